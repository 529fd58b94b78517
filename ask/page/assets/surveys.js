// What is being deleted, by who has to act; what has lost its owners; and what was deleted.
import { run } from "./ask.js";
import { commandBox, counted, crumbs, el, linkTo, renew, unreadBox } from "./dom.js";

const most = 200; // of a group

function survey(name, title, params, body) {
  return {
    name, title, needs: title.toLowerCase(),
    read: (signal) => run(name, params, signal),
    show(into, said) {
      const scope = params.namespace ? [[title, `#/${name}`], [`in the namespace ${params.namespace}`]] : [[title]];
      renew(into, crumbs(...scope), el("h1", {}, title), body(said), unreadBox(said.unread));
    },
  };
}

function section(title, items, line) {
  return el("section", {}, el("h2", {}, title), el("ul", {}, items.slice(0, most).map((i) => el("li", {}, line(i)))),
    items.length > most ? el("p", { class: "quiet" }, `and ${(items.length - most).toLocaleString("en")} more`) : null);
}

// pending is all that is being deleted.
export function pending(params) {
  return survey("pending", "Being deleted", params, ({ groups }) => groups.length ? groups.map((g) =>
    section(`${counted(g.items.length, "waits", "wait")} for ${g.actor}`, g.items, (i) => [linkTo(i), `${i.since ? ` for ${i.since}` : ""}: ${i.waits}`]))
    : [el("p", {}, "Nothing is being deleted.")]);
}

const fates = {
  delete: "A garbage collector deletes these",
  release: "A garbage collector removes references from these, and keeps them",
  keep: "These are kept, because their owners cannot be determined",
  protected: "These were kept when their owners were deleted",
};

// orphans are the objects whose owners are gone, or cannot be determined.
export function orphans(params) {
  return survey("orphans", "Lost owners", params, ({ items }) => (items || []).length ? Object.entries(fates).map(([fate, title]) => {
    const of = items.filter((o) => o.fate === fate);
    return of.length ? section(title, of, (o) => [linkTo(o), `: ${o.why}`]) : "";
  }) : [el("p", {}, "No object names an owner that is gone or cannot be determined.")]);
}

// deleted is what was deleted and can be restored. What a restore would do, only its command tells: the page does not
// read what is sealed.
export function deleted(params, { flags }) {
  return survey("deleted", "Deleted", params, ({ items }) => (items || []).length ? [el("p", {}, "The plan of a restore says what would be made again, and changes nothing."),
    section("", items, ({ metadata: { name }, spec: { root, deletionTime, expirationTime }, status = {} }) => [
      `${root.resource}${root.group ? `.${root.group}` : ""}/${root.namespace ? `${root.namespace}/` : ""}${root.name}: ${counted(status.objects || 0, "object", "objects")}, deleted ${deletionTime}, kept until ${expirationTime}`,
      commandBox(`kubectl weir restore ${name} --plan${flags}`)])]
    : [el("p", {}, "Nothing that was deleted is kept. A DeletionPolicy with archive says what is.")]);
}
