// Questions to the server of this page, and word of when to ask again.

// Nothing says that the answer is the one that was given before.
export const same = Symbol("same");

// aged tells whether an answer is so old that what rests on more than the metadata of objects is asked for again: Events, status, other
// namespaces, and the clock.
export const aged = (answered) => performance.now() - answered > 10_000; // milliseconds

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

const firstWord = 5000; // milliseconds in which a server of this machine has said its first word
const beatsMissed = 3; // are not a slow machine any more

// follow calls news with what the server tells by itself, and lost when it does not any more: when the connection ends, and when nothing
// comes over it, not even a beat. While nobody sees the page it has no connection: a browser has about six to a server, for all of its tabs.
export function follow(news, lost) {
  let stream, silence;
  const close = () => { clearTimeout(silence); stream?.close(); };
  const expect = (time) => {
    clearTimeout(silence);
    silence = setTimeout(() => { lost(); open(); }, time);
  };
  const open = () => {
    close();
    if (document.hidden) return;
    stream = new EventSource("api/events");
    stream.onmessage = (e) => {
      const said = JSON.parse(e.data);
      expect(beatsMissed * said.beat);
      news(said);
    };
    stream.onerror = () => lost(); // the browser tries again, or else the next silence does
    expect(firstWord);
  };
  document.addEventListener("visibilitychange", open);
  open();
}
