// Questions to the server of this page.

// ask sends a question, and fails with the words of the answer.
export async function ask(what, params = {}, signal) {
  const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== undefined && v !== ""));
  let answer;
  try {
    answer = await fetch(`api/${what}?${query}`, { signal });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Error("kubectl weir ui does not answer: if it has ended, start it again, and open the address that it prints.");
  }
  const text = await answer.text();
  let said;
  try { said = JSON.parse(text); } catch { said = { error: text }; }
  if (!answer.ok) throw new Error(said.error || `The answer was ${answer.status}.`);
  return said;
}

// run asks for what a command of kubectl weir answers.
export async function run(command, params, signal) { return (await ask(command, params, signal)).answer; }
