// Drawings of a plan: an icicle, in which what goes has room by number, and a graph of what is near.
import { hierarchy, partition, tree } from "./vendor/d3-hierarchy.mjs";
import { added, classOf, counted, el, nameOf, placeOf, svg, titleOf } from "./dom.js";

const cellHigh = 26;

// cells draws the icicle: the list has the same, for whoever cannot see it.
export function cells(into, plan, named) {
  const root = hierarchy(plan.cells, (c) => c.cells).each((n) => {
    n.value = Math.max(n.data.goes || 0, n.depth ? 0 : 1); // exactly what the server has counted
  });
  const wide = Math.max(300, Math.min(1360, document.getElementById("main").clientWidth - 34));
  partition().size([wide, (root.height + 1) * cellHigh])(root);
  const drawing = svg("svg", {
    width: wide, height: (root.height + 1) * cellHigh, viewBox: `0 0 ${wide} ${(root.height + 1) * cellHigh}`, role: "img",
    "aria-label": `Icicle of ${nameOf(plan.root)}: ${plan.summary}`,
  });
  into.replaceChildren(el("div", {},
    el("p", {}, `Each is as wide as what goes with it. What is narrower than a hair is not drawn; the list has it.`),
    el("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": "Icicle" }, drawing)));
  return added(drawing, root.descendants().map((n) => () => cell(n, named.namespace)));
}

function cell({ x0, x1, y0, data }, namespace) {
  const room = Math.floor((x1 - x0 - 8) / 6.5); // letters
  const text = `${data.symbol || "·"} ${nameOf(data, namespace)}`;
  return svg("g", {}, svg("rect", {
    class: `cell ${classOf(data.symbol)}`, x: x0, y: y0, width: Math.max(0, x1 - x0), height: cellHigh,
    onclick: () => { if (!data.siblings) location.hash = placeOf(data); },
  }, svg("title", {}, `${nameOf(data)}: ${counted(data.goes || 0, "object goes", "objects go")}${data.note ? `; ${data.note}` : ""}`)),
  room > 3 ? svg("text", { x: x0 + 4, y: y0 + 17 }, text.length > room ? `${text.slice(0, room - 1)}…` : text) : null);
}

// graph draws the neighbourhood below an object as nodes and links.
export function graph(into, { objects, links, left = 0 }, named) {
  const byID = new Map(objects.map((o) => [o.id, { line: o, below: [] }]));
  const hung = new Set([objects[0].id]);
  const other = []; // links to further owners
  for (const l of links) {
    if (hung.has(l.dependent)) { other.push(l); continue; }
    hung.add(l.dependent);
    byID.get(l.owner).below.push(byID.get(l.dependent));
    byID.get(l.dependent).link = l;
  }
  const root = tree().nodeSize([22, 260])(hierarchy(byID.get(objects[0].id), (n) => n.below));
  const at = new Map(root.descendants().map((n) => [n.data.line.id, n]));
  const all = root.descendants();
  const top = Math.min(...all.map((n) => n.x)) - 16, bottom = Math.max(...all.map((n) => n.x)) + 16;
  const wide = (root.height + 1) * 260 + 20;
  const curve = (a, b) => `M${a.y + 12},${a.x - top}C${(a.y + b.y) / 2 + 12},${a.x - top} ${(a.y + b.y) / 2 + 12},${b.x - top} ${b.y + 12},${b.x - top}`;
  const drawing = svg("svg", {
    class: "near", width: wide, height: bottom - top, viewBox: `0 0 ${wide} ${bottom - top}`, role: "img", "aria-label": `Graph of what hangs below ${titleOf(named)}`,
  });
  into.replaceChildren(el("div", {},
    el("p", {}, `${counted(objects.length, "object", "objects")}${left ? `, and ${left.toLocaleString("en")} further ones that are not drawn: the list has them` : ""}. Thick lines block, dashed ones are to further owners.`),
    el("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": "Graph" }, drawing)));
  return added(drawing, [
    ...root.links().map((l) => () => svg("path", { class: `link${l.target.data.link.blocks ? " blocks" : ""}`, d: curve(l.source, l.target) })),
    ...other.filter((l) => at.has(l.owner) && at.has(l.dependent)).map((l) => () => svg("path", { class: "link other", d: curve(at.get(l.owner), at.get(l.dependent)) })),
    ...all.map((n) => () => svg("g", {}, svg("circle", {
      class: `dot ${classOf(n.data.line.symbol)}`, cx: n.y + 12, cy: n.x - top, r: 6, onclick: () => { location.hash = placeOf(n.data.line); },
    }, svg("title", {}, titleOf(n.data.line))), svg("text", { x: n.y + 22, y: n.x - top + 4 }, short(`${n.data.line.symbol || "·"} ${n.data.line.kind}/${n.data.line.name}`)))),
  ]);
}

const short = (text) => text.length > 34 ? `${text.slice(0, 33)}…` : text;
