// What there is: namespaces, kinds, what is being deleted now; and what a search finds.
import { ask } from "./ask.js";
import { counted, el, linkTo, renew } from "./dom.js";

// overview is where the page begins.
export function overview() {
  return {
    name: "overview", title: "Overview",
    async read(anew, signal) {
      const [state, pending] = await Promise.all([ask("state", {}, signal), ask("pending", {}, signal)]);
      return { state, pending };
    },
    show(into, { state, pending }) {
      const groups = pending.groups.map((g) => el("li", {}, `${counted(g.total, "waits", "wait")} for ${g.actor}: `, linkTo(g.items[0]), g.total > 1 ? " and others" : ""));
      renew(into,
        el("h1", {}, "Overview"),
        el("p", {}, `${counted(state.objects, "object", "objects")} of ${counted(state.kinds.length, "kind", "kinds")}.`),
        el("h2", {}, "Being deleted now"),
        groups.length ? el("ul", {}, groups.slice(0, 5)) : el("p", {}, "Nothing is being deleted."),
        groups.length > 5 ? el("p", {}, el("a", { href: "#/pending" }, `All ${groups.length} groups`)) : null,
        el("div", { class: "columns" },
          el("section", {}, el("h2", { id: "by-namespace" }, "Namespaces"), table("by-namespace", "Namespace", state.namespaces.map((n) => ({
            title: n.name ? el("a", { href: `#/object/namespaces/-/${encodeURIComponent(n.name)}` }, n.name) : "cluster-scoped", ...n,
          })))),
          el("section", {}, el("h2", { id: "by-kind" }, "Kinds"), table("by-kind", "Kind", state.kinds.filter((k) => k.objects || k.problem || k.waiting).map((k) => ({
            title: k.problem ? `${k.kind}: ${k.problem}` : k.waiting ? `${k.kind}: is being listed` : k.kind, ...k,
          }))))),
      );
    },
  };
}

function table(labelledBy, head, rows) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": labelledBy }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, head), el("th", { scope: "col", class: "number" }, "Objects"), el("th", { scope: "col", class: "number" }, "Being deleted"))),
    el("tbody", {}, rows.map((r) => el("tr", {}, el("td", {}, r.title),
      el("td", { class: "number" }, r.objects.toLocaleString("en")), el("td", { class: "number" }, (r.deleting || 0).toLocaleString("en")))))));
}

// found is what a search finds.
export function found({ q = "" }) {
  return {
    name: "found", title: `Search: ${q}`,
    read: (anew, signal) => ask("search", { q }, signal),
    show(into, { items, total }) {
      renew(into, el("h1", {}, `Objects with “${q}” in their names`),
        el("p", {}, total ? `${counted(total, "object", "objects")}${total > items.length ? `, of which ${items.length} are shown: type more of the name` : ""}.` : "There is none that you may list."),
        el("ul", {}, (items || []).map((o) => el("li", {}, linkTo(o)))));
    },
  };
}
