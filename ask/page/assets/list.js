// The list: the lines of a plan, as kubectl weir plan draws them.
import { classOf, commandBox, el, kubectl, nameOf, placeOf } from "./dom.js";

// list is the lines of a plan of an object. Each name is a link to what the delete of that does.
export function list({ lines }, named, flags) {
  const all = lines || [];
  return [
    el("ul", { class: "rows", "aria-label": "What its delete does, line by line" }, all.map((l) => {
      const names = (l.objects || []).flatMap((o, n) => [n ? ", " : "", l.depth === 0 && l.count === 1 ? nameOf(o, named.namespace) : el("a", { href: placeOf(o) }, nameOf(o, named.namespace))]);
      const more = (l.count || 0) - (l.objects || []).length;
      const row = el("li", { class: `row ${classOf(l.symbol)}` }, el("span", { class: "symbol" }, l.symbol),
        el("span", {}, ...names, more > 0 ? ` and ${more.toLocaleString("en")} more` : "", l.each ? ", each with its own" : ""),
        l.note ? el("span", { class: "note" }, l.note) : null);
      row.style.setProperty("--deep", Math.min(l.depth, 12));
      return row;
    })),
    all.some((l) => !l.count) ? commandBox(`kubectl weir plan ${kubectl(named)} --full${flags}`) : null, // some lines are left out
  ];
}
