// Whether anything is wrong with deletion: what is being deleted, held, refused, and has lost its owners; and what a search finds.
import { aged, ask, same } from "./ask.js";
import { commandBox, counted, el, linkTo, renew, svg } from "./dom.js";

const slow = ["orphans", "guarded"]; // what rests on more than metadata, or takes longer
const shown = 3; // of a card
const number = (n) => n.toLocaleString("en");

// overview is where the page begins. Each card comes when its answer does.
export function overview() {
  const got = {};
  let asked; // when the slow questions were
  return {
    name: "overview", title: "Overview", needs: "what is being deleted, held, refused, and without its owners",
    aged: () => asked === undefined || aged(asked),
    async read(anew, signal, partly) {
      const all = anew || this.aged();
      if (all) asked = performance.now();
      await Promise.all(["state", "pending", ...(all ? slow : [])].map(async (what) => {
        try {
          const said = await ask(what, { have: all ? undefined : got[what]?.version }, signal);
          if (said !== same) got[what] = said;
        } catch (e) {
          if (!e.status) throw e; // it was given up, or nothing answers
          got[what] = { error: e.message };
        }
        await partly(got);
      }));
      return got;
    },
    show(into, { state, pending, orphans, guarded }) {
      if (!state) return;
      if (state.error) throw new Error(state.error);
      const ending = pending?.groups && state.namespaces.reduce((n, ns) => n + (ns.deleting || 0), 0);
      const held = guarded?.guarded?.held.length, refused = guarded?.guarded?.total, lost = orphans?.fates?.reduce((n, f) => n + f.total, 0);
      const parts = [ending, held, refused, lost];
      const unread = [pending, orphans, guarded].some((a) => a?.unread?.length || a?.error);
      const answer = parts.some((n) => n) ? "Perhaps: look at what is marked below."
        : parts.includes(undefined) ? "Looking …"
          : `No: nothing is being deleted or held, nothing was refused lately, and no owner is lost${unread ? ", as far as it could be read" : ""}.`;
      renew(into,
        el("h1", {}, "Is anything wrong with deletion here?"), el("p", { class: "summary" }, answer),
        el("div", { class: "cards" },
          card("ending", "Being deleted", ending, pending, pending?.groups?.map((g) => el("li", {}, linkTo(g.items[0]), g.items[0].since ? ` for ${g.items[0].since}` : "",
            el("div", { class: "quiet" }, `${counted(g.total, "waits", "wait")} for ${g.actor}`))), el("a", { href: "#/pending" }, "All, by who has to act")),
          card("held", "Held for a decision", held, guarded, guarded?.guarded?.held.map(({ name, status = {} }) => el("li", {},
            `${name}: ${counted(status.objects || 0, "object", "objects")}`, el("div", { class: "quiet" }, status.conditions?.[0]?.message || ""), commandBox(`kubectl weir held ${name}${guarded.guarded.flags}`)))),
          card("refused", "Refused or kept, last hour", refused, guarded, guarded?.guarded?.refused.map((r) => el("li", {}, r.name ? linkTo(r) : r.on, ` ${r.ago} ago`,
            el("div", { class: "quiet" }, r.message)))),
          card("lost", "Lost owners", lost, orphans, orphans?.fates?.flatMap((f) => f.items).map((o) => el("li", {}, linkTo(o), el("div", { class: "quiet" }, o.why))),
            el("a", { href: "#/orphans" }, "All, by what becomes of them"))),
        el("h2", { id: "by-namespace" }, "Namespaces"),
        table("by-namespace", ["Namespace", "State"], sized(state.namespaces).map((n) => [
          n.name ? el("a", { href: `#/object/namespaces/-/${encodeURIComponent(n.name)}` }, n.name) : "cluster-scoped",
          n.terminating ? el("b", { class: "s-waits" }, "Terminating") : n.name ? "Active" : "", n, Math.max(...state.namespaces.map((o) => o.objects))])),
        el("details", { id: "kinds" }, el("summary", { id: "by-kind" }, `${counted(state.objects, "object", "objects")} of ${counted(state.kinds.length, "kind", "kinds")}`),
          table("by-kind", ["Kind", "State"], state.kinds.filter((k) => k.objects || k.problem || k.waiting).map((k) => [k.kind, k.problem || (k.waiting ? "is being listed" : ""), k, 0]))),
      );
    },
  };
}

// sized are namespaces, those that go first, and then the largest.
const sized = (all) => all.toSorted((a, b) => !!b.terminating - !!a.terminating || b.objects - a.objects || (a.name < b.name ? -1 : 1));

// card is a number with the first of what there are so many of; undefined: it is not known yet.
function card(id, title, n, answer, items = [], more) {
  return el("section", { class: `card${n ? " some" : ""}`, "aria-labelledby": id },
    el("h2", { id }, el("span", { class: "big" }, n === undefined ? (answer?.error ? "?" : "…") : number(n)), ` ${title}`),
    answer?.error ? el("p", { class: "error" }, answer.error) : null,
    items.length ? el("ul", {}, items.slice(0, shown)) : null,
    items.length > shown && !more ? el("p", { class: "quiet" }, `and ${number(n - shown)} more`) : null,
    n && more ? el("p", {}, more) : null);
}

function table(labelledBy, heads, rows) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": labelledBy }, el("table", {},
    el("thead", {}, el("tr", {}, heads.map((h) => el("th", { scope: "col" }, h)), ["Objects", "Being deleted"].map((h) => el("th", { scope: "col", class: "number" }, h)))),
    el("tbody", {}, rows.map(([title, state, of, most]) => el("tr", {}, el("td", {}, title), el("td", {}, state),
      el("td", { class: "number" }, number(of.objects), most ? svg("svg", { class: "bar", width: 80, height: 8, "aria-hidden": "true" }, svg("rect", { width: 80 * of.objects / most, height: 8 })) : null),
      el("td", { class: `number${of.deleting ? " s-waits" : ""}` }, number(of.deleting || 0)))))));
}

// found is what a search finds.
export function found({ q = "" }) {
  return {
    name: "found", title: `Search: ${q}`, needs: "objects of the name",
    read: (anew, signal) => ask("search", { q }, signal),
    show(into, { items, total }) {
      renew(into, el("h1", {}, `Objects with “${q}” in their names`),
        el("p", {}, total ? `${counted(total, "object", "objects")}${total > items.length ? `, of which ${items.length} are shown: type more of the name` : ""}.` : "There is none that you may list."),
        el("ul", {}, (items || []).map((o) => el("li", {}, linkTo(o)))));
    },
  };
}
