// The list: what hangs below an object, indented. Only the rows that can be seen are elements, and only lines that can be seen
// are asked for.
import { ask } from "./ask.js";
import { classOf, el, nameOf, placeOf, titleOf } from "./dom.js";

const high = 28; // of a row, in pixels; as in page.css
const spare = 10; // rows above and below what is seen
const paged = 500; // lines of an answer; as the server has it
const mostUnfolded = 5000; // lines that are looked through for unfolded ones when a new plan comes

// list is the list of an object's plans. What is unfolded stays so when a new plan comes.
//
// What is shown is { plan, top, pages }. A fold is a line that is unfolded, with how many rows are below it and which folds are among these;
// top is that of the object, undefined where it is not unfolded. Rows are not kept: there may be as many as objects in a cluster.
// lost is called when lines of the plan cannot be had: another plan is to be taken.
export function list(named, lost) {
  let shown;
  let newest; // the plan that was taken last, which may not be shown yet
  let here = 0; // the row with the keyboard
  const unfolded = new Set();
  const room = el("div", { class: "room", role: "presentation" });
  const box = el("div", { class: "rows", role: "tree", tabindex: 0, "aria-label": `What hangs below ${titleOf(named)}`, onscroll: draw, onkeydown: key }, room);

  // take shows a plan.
  async function take(plan) {
    if (plan === shown?.plan) { draw(); return; }
    newest = plan;
    const next = { plan, pages: new Map(), looked: 0 };
    if (!shown) unfolded.add(plan.root.uid);
    if (plan.root.below && unfolded.has(plan.root.uid)) next.top = await grown(next, { line: plan.root, key: plan.root.uid, depth: 0 });
    if (newest !== plan) return;
    await Promise.all(missing(next, ...seen(next)).map(([of, from]) => page(next, of, from).asked)); // or else rows would be empty for a moment
    if (newest !== plan) return;
    shown = next;
    draw();
  }

  // height is how many rows there are.
  const height = (of) => 1 + (of.top?.height ?? 0);

  // grown is the fold of a row, with those below it that were unfolded before.
  async function grown(of, { line, key, depth, index, above }) {
    const fold = { line, key, depth, index, above, folds: [], height: line.below };
    const { lines } = await page(of, line.id, 0).asked;
    for (const [i, below] of lines.entries()) {
      if (++of.looked > mostUnfolded) break;
      const row = { line: below, key: keyOf(below, key), depth: depth + 1, index: i, above: fold };
      if (below.below && unfolded.has(row.key)) put(fold, await grown(of, row), 0);
    }
    for (const f of fold.folds) fold.height += f.height;
    return fold;
  }

  // put puts a fold among those of the one above it, with so many rows.
  function put(above, fold, rows) {
    const at = above.folds.findIndex((f) => f.index > fold.index);
    above.folds.splice(at < 0 ? above.folds.length : at, 0, fold);
    grow(above, rows);
  }

  const grow = (fold, rows) => { for (; fold; fold = fold.above) fold.height += rows; };

  const keyOf = (line, above) => `${above}/${line.siblings ? `${line.kind} ${line.symbol ?? ""} ${line.state ?? ""}` : line.uid}`;

  // rowAt is the nth row: the line, where it has come, and where it hangs.
  function rowAt(n, of = shown) {
    const { plan, top } = of;
    if (n === 0) return { line: plan.root, key: plan.root.uid, depth: 0, fold: top };
    let above = top, index = n - 1; // of the rows below it
    for (let at = 0; at < above.folds.length && index > above.folds[at].index;) {
      const fold = above.folds[at], rest = index - fold.index - 1;
      if (rest < fold.height) { above = fold; index = rest; at = 0; } else { index -= fold.height; at++; }
    }
    const line = lineAt(of, above.line.id, index);
    return { line, key: line && keyOf(line, above.key), depth: above.depth + 1, index, above, fold: above.folds.find((f) => f.index === index) };
  }

  // numberOf is the row of a fold's line.
  function numberOf(fold) {
    if (!fold.above) return 0;
    let n = numberOf(fold.above) + 1 + fold.index;
    for (const f of fold.above.folds) if (f.index < fold.index) n += f.height;
    return n;
  }

  // lineAt is a line by its place below another; undefined where it has not come.
  const lineAt = (of, below, index) => of.pages.get(`${below}/${index - index % paged}`)?.lines?.[index % paged];

  // page are some lines below one, which have come or are on their way.
  function page(of, below, from) {
    const name = `${below}/${from}`;
    let p = of.pages.get(name);
    if (!p) {
      p = { lines: undefined };
      p.asked = ask("lines", { plan: of.plan.id, below, from }).then((a) => { p.lines = a.lines || []; return p; }, (e) => { of.pages.delete(name); throw e; });
      of.pages.set(name, p);
    }
    return p;
  }

  // seen are the first row that can be seen, and the last: with some to spare.
  function seen(of) {
    const first = Math.max(0, Math.floor(box.scrollTop / high) - spare);
    return [first, Math.min(height(of), Math.ceil((box.scrollTop + (box.clientHeight || 600)) / high) + spare)];
  }

  // missing are the pages of lines, from one row to another, that were not asked for.
  function missing(of, first, last) {
    const pages = new Map();
    for (let n = first; n < last; n++) {
      const { line, above, index } = rowAt(n, of);
      if (!line && !of.pages.has(`${above.line.id}/${index - index % paged}`)) pages.set(`${above.line.id}/${index - index % paged}`, [above.line.id, index - index % paged]);
    }
    return [...pages.values()];
  }

  async function toggle(n, open) {
    const of = shown, row = rowAt(n);
    if (!row.line?.below) return;
    if (open === undefined) open = !row.fold;
    if (open === !!row.fold) return;
    if (open) {
      unfolded.add(row.key);
      of.looked = 0;
      let fold;
      try { fold = await grown(of, row); } catch { return lost(); } // the next plan has it unfolded
      // Another plan may have come meanwhile, or it was folded again, or what it hangs below was.
      if (shown !== of || !unfolded.has(row.key) || !there(of, row.above) || row.above?.folds.some((f) => f.index === fold.index)) return;
      if (row.above) put(row.above, fold, fold.height);
      else of.top = fold;
    } else {
      unfolded.delete(row.key);
      if (row.above) {
        row.above.folds = row.above.folds.filter((f) => f !== row.fold);
        grow(row.above, -row.fold.height);
      } else of.top = undefined;
    }
    draw();
  }

  // there tells whether a fold, and all above it, is unfolded. What is above the object always is.
  const there = (of, fold) => !fold || (fold.above ? fold.above.folds.includes(fold) && there(of, fold.above) : of.top === fold);

  function draw() {
    if (!shown) return;
    here = Math.min(here, height(shown) - 1);
    const [first, last] = seen(shown);
    room.style.height = `${height(shown) * high}px`;
    box.style.height = `${height(shown) * high + 2}px`; // and no more than page.css says
    room.replaceChildren(...Array.from({ length: last - first }, (_, i) => element(rowAt(first + i), first + i)));
    if (here >= first && here < last) box.setAttribute("aria-activedescendant", `row-${here}`);
    else box.removeAttribute("aria-activedescendant"); // it is not an element now
    for (const [of, from] of missing(shown, first, last)) come(shown, of, from);
  }

  // come asks for lines that are missing, and draws them.
  async function come(of, below, from) {
    try { await page(of, below, from).asked; } catch { return lost(); }
    if (shown === of) draw();
  }

  function element(row, n) {
    const { line } = row;
    const where = { id: `row-${n}`, role: "treeitem", "aria-level": row.depth + 1, class: "row" };
    if (!line) return placed(el("div", where, el("span", { class: "note" }, "Reading …")), row, n);
    const open = !!row.fold;
    const title = nameOf(line, named.namespace);
    const words = [
      line.note, !line.note && line.outcome === "delete" ? "is deleted" : "", line.state, line.blocks ? "blocks" : "", ...(line.lost || []),
      line.again ? "drawn elsewhere" : "", line.goes > 1 ? `${line.goes.toLocaleString("en")} go with it` : "", line.age ? `${line.age} old` : "",
    ].filter(Boolean);
    return placed(el("div", {
      ...where, class: `row ${classOf(line.symbol)}${n === here ? " here" : ""}`, "aria-expanded": line.below ? String(open) : undefined,
      "aria-selected": String(n === here), onclick: () => { here = n; draw(); }, ondblclick: () => toggle(n),
    },
    el("span", { class: "fold", "aria-hidden": "true", onclick: (e) => { e.stopPropagation(); here = n; toggle(n); } }, line.below ? (open ? "▾" : "▸") : ""),
    el("span", { class: "symbol" }, line.symbol || "·"),
    line.siblings || row.depth === 0 ? el("span", {}, title) : el("a", { href: placeOf(line), tabindex: -1 }, title),
    words.length ? el("span", { class: "note" }, words.join(", ")) : null), row, n);
  }

  function placed(e, row, n) {
    e.style.top = `${n * high}px`;
    e.style.setProperty("--deep", Math.min(row.depth, 12));
    return e;
  }

  function key(e) {
    if (!shown) return;
    const page = Math.max(1, Math.floor(box.clientHeight / high) - 1);
    const row = rowAt(here);
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: height(shown) - 1, PageDown: here + page, PageUp: here - page }[e.key];
    if (to !== undefined) move(to);
    else if (e.key === "ArrowRight") row.fold ? move(here + 1) : toggle(here, true);
    else if (e.key === "ArrowLeft") row.fold ? toggle(here, false) : move(row.above ? numberOf(row.above) : 0);
    else if (e.key === " ") toggle(here);
    else if (e.key === "Enter" && row.line && !row.line.siblings) location.hash = placeOf(row.line);
    else return;
    e.preventDefault();
  }

  function move(to) {
    here = Math.max(0, Math.min(height(shown) - 1, to));
    const top = here * high;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + high > box.scrollTop + box.clientHeight) box.scrollTop = top + high - box.clientHeight;
    draw();
  }

  return { element: box, take };
}
