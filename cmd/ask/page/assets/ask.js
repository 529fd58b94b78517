// Questions to the server of this page, and word of when to ask again.

// Nothing says that the answer is the one that was given before.
export const same = Symbol("same");

export class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

// ask sends a question, and fails with the words of the answer.
export async function ask(what, params = {}, signal) {
  const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== undefined && v !== ""));
  let answer;
  try {
    answer = await fetch(`api/${what}?${query}`, { signal });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Refused(0, "kubectl weir ui does not answer any more: start it again, and open the address that it prints.");
  }
  if (answer.status === 204) return same;
  const text = await answer.text();
  let said;
  try { said = JSON.parse(text); } catch { said = { error: text }; }
  if (!answer.ok) throw new Refused(answer.status, said.error || `The answer was ${answer.status}.`);
  return said;
}

// follow calls news with what the server tells by itself, and lost when it does not any more.
export function follow(news, lost) {
  const stream = new EventSource("api/events");
  stream.onmessage = (e) => news(JSON.parse(e.data));
  stream.onerror = () => lost();
}
