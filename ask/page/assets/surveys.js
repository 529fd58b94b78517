// What is being deleted, by who has to act; what has lost its owners; and what was deleted.
import { aged, ask, same } from "./ask.js";
import { commandBox, counted, crumbs, el, linkTo, renew, unreadBox } from "./dom.js";

function survey(name, title, params, body) {
  let have;
  let answered; // when, if the answer tells how long things have lasted
  return {
    name, title, needs: title.toLowerCase(),
    aged: () => answered !== undefined && aged(answered),
    async read(anew, signal) {
      const said = await ask(name, { ...params, have: anew || this.aged() ? undefined : have }, signal);
      if (said !== same) [have, answered] = [said.version, (said.groups ?? said.trees)?.length ? performance.now() : undefined];
      return said;
    },
    show(into, said) {
      const scope = params.namespace ? [[title, `#/${name}`], [`in the namespace ${params.namespace}`]] : [[title]];
      renew(into, crumbs(...scope), el("h1", {}, title), body(said), unreadBox(said.unread));
    },
    failed() { have = undefined; },
  };
}

function rest(total, items) { return total > items.length ? el("p", { class: "quiet" }, `and ${(total - items.length).toLocaleString("en")} more`) : null; }

// pending is all that is being deleted.
export function pending(params) {
  return survey("pending", "Being deleted", params, ({ groups }) => groups.length ? groups.map((g) => el("section", {},
    el("h2", {}, `${counted(g.total, "waits", "wait")} for ${g.actor}`),
    el("ul", {}, g.items.map((i) => el("li", {}, linkTo(i), `${i.since ? ` for ${i.since}` : ""}: ${i.waits}`))), rest(g.total, g.items) ?? "")) : [el("p", {}, "Nothing is being deleted.")]);
}

const fates = {
  delete: "A garbage collector deletes these",
  release: "A garbage collector removes references from these, and keeps them",
  keep: "These are kept, because their owners cannot be determined",
};

// orphans are the objects whose owners are gone, or cannot be determined.
export function orphans(params) {
  return survey("orphans", "Lost owners", params, ({ fates: all }) => all.length ? all.map((f) => el("section", {}, el("h2", {}, fates[f.fate]),
    el("ul", {}, f.items.map((o) => el("li", {}, linkTo(o), `: ${o.why}${o.stray ? ` (an object with that uid is in the namespace ${o.stray})` : ""}`))), rest(f.total, f.items) ?? ""))
    : [el("p", {}, "No object names an owner that is gone or cannot be determined.")]);
}

// deleted is what was deleted and can be restored. What a restore would do, only its command tells: the page does not
// read what is sealed.
export function deleted(params) {
  return survey("deleted", "Deleted", params, ({ trees, total, flags }) => trees.length ? [el("p", {}, "The plan of a restore says what would be made again, and changes nothing."),
    el("ul", {}, trees.map((t) => el("li", {}, `${t.object}: ${t.recorded}, deleted ${t.deleted} ago, kept for ${t.expires}`,
      commandBox(`kubectl weir restore ${t.tree} --plan${flags}`)))), rest(total, trees) ?? ""]
    : [el("p", {}, "Nothing that was deleted is kept. A DeletionPolicy with archive says what is.")]);
}
