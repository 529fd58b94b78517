// One object: why it is as it is, who owns it, and what its delete does.
import { run } from "./ask.js";
import { classOf, commandBox, crumbs, el, kubectl, linkTo, placeOf, renew, titleOf, unreadBox } from "./dom.js";
import { list } from "./list.js";

const key = { "-": "is deleted", "!": "is deleted, and waits", "~": "is kept, and loses a reference", "?": "is kept: its owners cannot be determined" };
const cascades = ["background", "foreground", "orphan"];

// object shows one, and what its delete does. What is gone has only why.
export function object(named, params, { flags }) {
  const cascade = cascades.includes(params.cascade) ? params.cascade : "background";
  return {
    name: "object", title: titleOf(named), needs: "the object, and the plan of its delete",
    async read(signal) {
      const why = await run("why", named, signal);
      if (why.gone) return { why };
      const [plan, tree] = await Promise.all([run("plan", { ...named, cascade }, signal).catch((e) => ({ failed: e.message })), run("tree", named, signal)]);
      return { why, plan, owners: tree.roots };
    },
    show(into, { why, plan, owners }) {
      const { kind, namespace, name } = named;
      const inside = namespace ? [[namespace, placeOf({ kind: "namespaces", name: namespace })]] : [];
      const command = `kubectl delete ${kubectl(named)}${cascade === "background" ? "" : ` --cascade=${cascade}`}${flags}`;
      renew(into, crumbs(...inside, [kind], [name]), el("h1", {}, titleOf(named)), el("p", {}, `It ${why.state}.`),
        el("div", { class: "split" },
          plan ? el("div", {}, planned(plan), commandBox(command)) : null,
          el("div", { class: "side" }, causes(why), ...(owners ? [el("h2", {}, "Owners"), ...above(owners)] : []))),
        unreadBox([...new Map([...(why.unread || []), ...(plan?.unread || [])].map((u) => [u.kind, u])).values()]));
    },
  };

  function causes(why) {
    return [
      el("h2", {}, why.gone ? "Why it is gone" : why.deleting ? "Why it is still there" : "Why it is there"),
      el("ol", {}, (why.causes || []).map((c) => el("li", {}, `${c.what[0].toUpperCase()}${c.what.slice(1)}.`,
        c.actor ? el("div", {}, `Who has to act: ${c.actor}.`) : null,
        (c.evidence || []).map((e) => el("div", { class: "quiet" }, `Evidence: ${e}.`)),
        (c.objects || []).length ? el("div", {}, "See ", c.objects.flatMap((x, n) => [n ? ", " : "", linkTo(x)])) : null,
        c.look ? el("div", {}, "To see more:", commandBox(c.look)) : null))),
    ];
  }

  // above are the trees of owners, down to the object; where it is alone in them, nothing owns it.
  function above(roots) {
    const tree = (n) => el("li", {}, n.asked ? el("b", {}, titleOf(n)) : linkTo(n), notes(n), !n.asked && (n.dependents || []).length ? el("ul", {}, n.dependents.map(tree)) : null);
    const notes = (n) => {
      const words = [n.state, n.blocks ? "blocks its owner's foreground deletion" : "", ...(n.lost || []), n.again ? "drawn elsewhere" : ""].filter(Boolean);
      return words.length ? el("span", { class: "quiet" }, `: ${words.join(", ")}`) : null;
    };
    if (roots.length === 1 && roots[0].asked && !(roots[0].lost || []).length) return [el("p", {}, "Nothing owns it.")];
    return [el("ul", {}, roots.map(tree))];
  }

  function planned(plan) {
    return [
      el("h2", {}, "What its delete does"),
      el("div", { class: "choices", role: "group", "aria-label": "Propagation" }, cascades.map((c) =>
        el("button", { type: "button", "aria-pressed": String(c === cascade), "data-choice": c, onclick: () => { location.hash = placeOf(named, c); } },
          c[0].toUpperCase() + c.slice(1)))),
      ...(plan.failed ? [el("p", { class: "error" }, plan.failed)] : [
        ...(plan.verdicts || []).flatMap((d) => [
          d.refused ? el("p", { class: "refused" }, `A policy refuses the delete: ${d.message}`) : null,
          d.doubt ? el("p", { class: "warned" }, `Whether a policy refuses the delete is not known: ${d.doubt}`) : null,
          d.confirm ? el("div", {}, "To confirm exactly what this plan shows:", commandBox(d.confirm)) : null,
          ...(d.warnings || []).map((w) => el("p", { class: "warned" }, w)),
        ]),
        el("p", { class: "summary", id: "summary" }, plan.summary),
        el("p", { class: "key" }, Object.entries(key).map(([symbol, means]) => el("span", { class: classOf(symbol) }, el("span", { class: "symbol" }, symbol), ` ${means}`))),
        ...list(plan, named, flags),
      ]),
    ];
  }
}
