// One object: why it is as it is, who owns it, and what its delete does.
import { aged, ask, same } from "./ask.js";
import { classOf, commandBox, crumbs, el, kubectl, linkTo, placeOf, renew, titleOf, unreadBox } from "./dom.js";
import { list } from "./list.js";

const key = { "-": "is deleted", "!": "is deleted, and waits", "~": "is kept, and loses a reference", "?": "is kept: its owners cannot be determined" };
const cascades = ["background", "foreground", "orphan"];

// object shows one, with the plan of its delete laid over what hangs below it.
export function object(named, params) {
  let cascade = cascades.includes(params.cascade) ? params.cascade : "background";
  let said, plan; // the last answers
  let answered = 0; // when it was said why
  let shown; // the parts of the page, once they are there
  const v = {
    name: "object", title: titleOf(named), named, needs: "the object, and the plan of its delete",
    // keep takes over from the next view if it is of the same object: what was unfolded stays so.
    keep(next) {
      if (next.name !== "object" || titleOf(next.named) !== titleOf(named) || !shown) return false;
      cascade = next.look();
      return true;
    },
    look: () => cascade,
    // aged tells whether why it is still there has to be asked again although nothing has changed.
    aged: () => !!said?.why.deleting && aged(answered),
    async read(anew, signal) {
      const of = cascade;
      const [o, p] = await Promise.all([
        ask("object", { ...named, have: anew || v.aged() ? undefined : said?.version }, signal),
        ask("plan", { ...named, cascade, have: anew ? undefined : plan?.id }, signal),
      ]);
      // Where the user asks for another propagation meanwhile, that is read next, and this plan belongs below no button that is pressed.
      return of !== cascade || o === same && p === same ? same : { o, p };
    },
    async show(into, { o, p }) {
      if (o !== same) [said, answered] = [o, performance.now()];
      if (p !== same) plan = p;
      if (!shown || !into.contains(shown.head)) {
        shown = { head: el("div"), plan: el("div"), body: el("div"), command: el("div"), side: el("div", { class: "side" }), end: el("div"), list: list(named, () => v.again()) };
        into.replaceChildren(shown.head, el("div", { class: "split" }, el("div", {}, shown.plan, shown.body, shown.command), shown.side), shown.end);
      }
      renew(shown.head, head());
      renew(shown.side, side());
      renew(shown.plan, planned());
      renew(shown.command, commandBox(`kubectl delete ${kubectl(named)}${cascade === "background" ? "" : ` --cascade=${cascade}`}${plan.flags}`));
      renew(shown.end, unreadBox([...new Map([...(said.unread || []), ...(plan.unread || [])].map((u) => [u.kind, u])).values()], said.notRead));
      if (!shown.body.contains(shown.list.element)) shown.body.replaceChildren(shown.list.element);
      await shown.list.take(plan);
    },
    failed() { said = plan = shown = undefined; },
  };

  function head() {
    const { kind, namespace, name } = named;
    const inside = namespace ? [[namespace, placeOf({ kind: "namespaces", name: namespace })]] : [];
    return [crumbs(...inside, [kind], [name]), el("h1", {}, titleOf(named)), el("p", {}, `It ${said.why.state}.`)];
  }

  function side() {
    const why = said.why;
    return [
      el("h2", {}, why.deleting ? "Why it is still there" : "Why it is there"),
      el("ol", {}, (why.causes || []).map((c) => el("li", {}, `${c.what[0].toUpperCase()}${c.what.slice(1)}.`,
        c.actor ? el("div", {}, `Who has to act: ${c.actor}.`) : null,
        (c.evidence || []).map((e) => el("div", { class: "quiet" }, `Evidence: ${e}.`)),
        (c.objects || []).length ? el("div", {}, "See ", c.objects.flatMap((x, n) => [n ? ", " : "", linkTo(x)])) : null,
        c.look ? el("div", {}, "To see more:", commandBox(c.look)) : null))),
      el("h2", {}, "Owners"),
      ...owners(),
    ];
  }

  // owners are the trees above the object; where it is alone in them, nothing owns it.
  function owners() {
    const tree = (n) => el("li", {}, n.asked ? el("b", {}, titleOf(n)) : linkTo(n), notes(n), (n.dependents || []).length ? el("ul", {}, n.dependents.map(tree)) : null);
    const notes = (n) => {
      const words = [n.state, n.blocks ? "blocks its owner's foreground deletion" : "", ...(n.lost || []), n.again ? "drawn elsewhere" : ""].filter(Boolean);
      return words.length ? el("span", { class: "quiet" }, `: ${words.join(", ")}`) : null;
    };
    const roots = said.owners || [];
    if (roots.length === 1 && roots[0].asked && !(roots[0].lost || []).length) return [el("p", {}, "Nothing owns it.")];
    return [el("ul", {}, roots.map(tree))];
  }

  function planned() {
    return [
      el("h2", {}, "What its delete does"),
      el("div", { class: "choices", role: "group", "aria-label": "Propagation" }, cascades.map((c) =>
        el("button", { type: "button", "aria-pressed": String(c === cascade), "data-choice": c, onclick: () => { location.hash = placeOf(named, c); } },
          c[0].toUpperCase() + c.slice(1)))),
      ...(plan.verdicts || []).flatMap((d) => [
        d.refused ? el("p", { class: "refused" }, `${d.by ? "The API server" : "A policy"} refuses the delete: ${d.message}`) : null,
        d.doubt ? el("p", { class: "warned" }, `Whether a policy refuses the delete is not known: ${d.doubt}`) : null,
        d.confirm ? el("div", {}, "To confirm exactly what this plan shows:", commandBox(d.confirm)) : null,
        ...(d.warnings || []).map((w) => el("p", { class: "warned" }, w)),
      ]),
      el("p", { class: "summary", id: "summary" }, plan.summary),
      el("p", { class: "key" }, Object.entries(key).map(([symbol, means]) => el("span", { class: classOf(symbol) }, el("span", { class: "symbol" }, symbol), ` ${means}`))),
    ];
  }
  return v;
}
