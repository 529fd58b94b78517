// The icicle: a drawing of a plan in which what goes has room by number. The tree has the same, for whoever cannot see it.
import { added, classOf, counted, el, nameOf, placeOf, svg } from "./dom.js";

const cellHigh = 26;

// manyCells tells whether a plan has so many cells that the drawing says more than the tree.
export const manyCells = (plan) => laid(plan.cells, 0, 1).length > 60;

// laid are the cells below one, and itself, with their places: each is as wide as its share of what the server has counted.
function laid(cell, from, wide, depth = 0) {
  const all = [{ cell, from, wide, depth }];
  for (const c of cell.cells || []) {
    const share = wide * (c.goes || 0) / Math.max(cell.goes || 0, 1);
    all.push(...laid(c, from, share, depth + 1));
    from += share;
  }
  return all;
}

// cells draws the icicle.
export function cells(into, plan, named) {
  const wide = Math.max(280, Math.min(1360, into.clientWidth - 4));
  const all = laid(plan.cells, 0, wide);
  const high = (Math.max(...all.map((c) => c.depth)) + 1) * cellHigh;
  const drawing = svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `Icicle of ${nameOf(plan.root)}: ${plan.summary}` });
  into.replaceChildren(el("div", {},
    el("p", {}, "Each is as wide as what goes with it. What is narrower than a hair is not drawn; the tree has it."),
    el("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": "Icicle" }, drawing)));
  return added(drawing, all.map((c) => () => drawn(c, named.namespace)));
}

function drawn({ cell, from, wide, depth }, namespace) {
  const room = Math.floor((wide - 8) / 6.5); // letters
  const text = `${cell.symbol || "·"} ${nameOf(cell, namespace)}`;
  return svg("g", {}, svg("rect", {
    class: `cell ${classOf(cell.symbol)}`, x: from, y: depth * cellHigh, width: wide, height: cellHigh,
    onclick: () => { if (!cell.siblings) location.hash = placeOf(cell); },
  }, svg("title", {}, `${nameOf(cell)}: ${counted(cell.goes || 0, "object goes", "objects go")}${cell.note ? `; ${cell.note}` : ""}`)),
  room > 3 ? svg("text", { x: from + 4, y: depth * cellHigh + 17 }, text.length > room ? `${text.slice(0, room - 1)}…` : text) : null);
}
