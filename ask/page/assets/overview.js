// Whether anything is wrong with deletion: what is being deleted, held, and has lost its owners.
import { ask, run } from "./ask.js";
import { commandBox, counted, el, linkTo, renew } from "./dom.js";

const shown = 3; // of a card
const number = (n) => n.toLocaleString("en");

// overview is where the page begins. Each card comes when its answer does.
export function overview({ flags }) {
  const got = {};
  return {
    name: "overview", title: "Overview", needs: "what is being deleted, held, and without its owners",
    async read(signal, partly) {
      const questions = { namespaces: ask("namespaces", {}, signal), pending: run("pending", {}, signal), orphans: run("orphans", {}, signal), held: run("held", {}, signal) };
      await Promise.all(Object.entries(questions).map(async ([what, asked]) => {
        try {
          got[what] = await asked;
        } catch (e) {
          if (e.name === "AbortError") throw e;
          got[what] = { error: e.message };
        }
        partly(got);
      }));
      return got;
    },
    show(into, { namespaces, pending, orphans, held }) {
      const ending = pending?.groups && new Set(pending.groups.flatMap((g) => g.items.map((i) => i.uid))).size;
      const parts = [ending, held?.items?.length, orphans?.items?.length];
      const unread = [pending, orphans].some((a) => a?.unread?.length || a?.error);
      const answer = parts.some((n) => n) ? "Perhaps: look at what is marked below."
        : parts.includes(undefined) ? "Looking …"
          : `No: nothing is being deleted or held, and no owner is lost${unread ? ", as far as it could be read" : ""}.`;
      renew(into,
        el("h1", {}, "Is anything wrong with deletion here?"), el("p", { class: "summary" }, answer),
        el("div", { class: "cards" },
          card("ending", "Being deleted", ending, pending, pending?.groups?.map((g) => el("li", {}, linkTo(g.items[0]), g.items[0].since ? ` for ${g.items[0].since}` : "",
            el("div", { class: "quiet" }, `${counted(g.items.length, "waits", "wait")} for ${g.actor}`))), el("a", { href: "#/pending" }, "All, by who has to act")),
          card("held", "Held for a decision", held?.items?.length, held, held?.items?.map(({ metadata: { name }, status = {} }) => el("li", {},
            `${name}: ${counted(status.objects || 0, "object", "objects")}`, el("div", { class: "quiet" }, status.conditions?.[0]?.message || ""), commandBox(`kubectl weir held ${name}${flags}`)))),
          card("lost", "Lost owners", orphans?.items?.length, orphans, orphans?.items?.map((o) => el("li", {}, linkTo(o), el("div", { class: "quiet" }, o.why))),
            el("a", { href: "#/orphans" }, "All, by what becomes of them"))),
        el("h2", {}, "Namespaces"),
        namespaces?.error ? el("p", { class: "error" }, namespaces.error) : el("ul", {}, (namespaces || []).map((n) => el("li", {}, linkTo({ kind: "namespaces", name: n.name }),
          n.terminating ? el("b", { class: "s-waits" }, " Terminating") : null))));
    },
  };
}

// card is a number with the first of what there are so many of; undefined: it is not known yet.
function card(id, title, n, answer, items = [], more) {
  return el("section", { class: `card${n ? " some" : ""}`, "aria-labelledby": id },
    el("h2", { id }, el("span", { class: "big" }, n === undefined ? (answer?.error ? "?" : "…") : number(n)), ` ${title}`),
    answer?.error ? el("p", { class: "error" }, answer.error) : null,
    items.length ? el("ul", {}, items.slice(0, shown)) : null,
    items.length > shown && !more ? el("p", { class: "quiet" }, `and ${number(n - shown)} more`) : null,
    n && more ? el("p", {}, more) : null);
}
