// The list: what hangs below an object, indented. Only the rows that can be seen are elements, and only lines that can be seen
// are asked for.
import { ask } from "./ask.js";
import { classOf, el, nameOf, placeOf, titleOf } from "./dom.js";

const high = 28; // of a row, in pixels; as in page.css
const spare = 10; // rows above and below what is seen
const paged = 500; // lines of an answer; as the server has it
const mostUnfolded = 5000; // rows that are looked through when a new plan comes

// list is the list of an object's plans. What is unfolded stays so when a new plan comes.
export function list(named) {
  let plan;
  let rows = []; // without a line, one has not come yet
  let here = 0; // the row with the keyboard
  const unfolded = new Set();
  let pages = new Map(); // that have come, or are on their way
  const room = el("div", { class: "room", role: "presentation" });
  const box = el("div", { class: "rows", role: "tree", tabindex: 0, "aria-label": `What hangs below ${titleOf(named)}`, onscroll: draw, onkeydown: key }, room);

  // take shows a plan.
  async function take(next) {
    if (next === plan) { draw(); return; }
    plan = next;
    pages = new Map();
    const root = { line: plan.root, depth: 0, key: plan.root.uid };
    if (!rows.length) unfolded.add(root.key);
    let now = [root];
    for (let n = 0; n < Math.min(now.length, mostUnfolded); n++) {
      if (now[n].line?.below && unfolded.has(now[n].key)) now = spliced(now, n, await below(now[n]));
      if (plan !== next) return;
    }
    rows = now;
    here = Math.min(here, rows.length - 1);
    draw();
  }

  const spliced = (all, n, more) => all.slice(0, n + 1).concat(more, all.slice(n + 1)); // arguments would be too many

  // below are the rows directly below one, the first of them with their lines.
  async function below(row) {
    const first = await page(row.line.id, 0);
    return Array.from({ length: row.line.below }, (_, i) => filled({ depth: row.depth + 1, of: row.line.id, index: i, above: row.key }, first[i]));
  }

  function filled(row, line) {
    if (line) {
      row.line = line;
      row.key = `${row.above}/${line.siblings ? `${line.kind} ${line.symbol ?? ""} ${line.state ?? ""}` : line.uid}`;
    }
    return row;
  }

  function page(of, from) {
    const name = `${of}/${from}`;
    if (!pages.has(name)) pages.set(name, ask("lines", { plan: plan.id, below: of, from }).then((a) => a.lines || []));
    return pages.get(name);
  }

  async function toggle(n, open) {
    const row = rows[n];
    if (!row?.line?.below) return;
    if (open === undefined) open = !unfolded.has(row.key);
    if (open === unfolded.has(row.key)) return;
    if (open) {
      unfolded.add(row.key);
      const mine = plan;
      const more = await below(row);
      if (plan !== mine || rows[n] !== row) return; // another plan has come meanwhile, and knows that it is unfolded
      rows = spliced(rows, n, more);
    } else {
      unfolded.delete(row.key);
      let end = n + 1;
      while (end < rows.length && rows[end].depth > row.depth) end++;
      rows = rows.slice(0, n + 1).concat(rows.slice(end));
    }
    draw();
  }

  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / high) - spare);
    const last = Math.min(rows.length, Math.ceil((box.scrollTop + (box.clientHeight || 600)) / high) + spare);
    room.style.height = `${rows.length * high}px`;
    box.style.height = `${rows.length * high + 2}px`; // and no more than page.css says
    const missing = new Map();
    room.replaceChildren(...rows.slice(first, last).map((row, i) => {
      if (!row.line) missing.set(`${row.of}/${Math.floor(row.index / paged)}`, [row.of, Math.floor(row.index / paged) * paged]);
      return element(row, first + i);
    }));
    if (here >= first && here < last) box.setAttribute("aria-activedescendant", `row-${here}`);
    else box.removeAttribute("aria-activedescendant"); // it is not an element now
    for (const [of, from] of missing.values()) come(of, from);
  }

  // come fills rows with lines that were missing.
  async function come(of, from) {
    const mine = plan;
    let lines;
    try { lines = await page(of, from); } catch { return; } // the next plan asks again
    if (plan !== mine) return;
    for (const row of rows) if (row.of === of && row.index >= from && row.index < from + lines.length && !row.line) filled(row, lines[row.index - from]);
    draw();
  }

  function element(row, n) {
    const { line } = row;
    const where = { id: `row-${n}`, role: "treeitem", "aria-level": row.depth + 1, class: "row" };
    if (!line) return placed(el("div", where, el("span", { class: "note" }, "Reading …")), row, n);
    const open = unfolded.has(row.key);
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
    e.style.paddingLeft = `${Math.min(row.depth, 12) * 18 + 4}px`;
    return e;
  }

  function key(e) {
    const page = Math.max(1, Math.floor(box.clientHeight / high) - 1);
    const row = rows[here];
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: rows.length - 1, PageDown: here + page, PageUp: here - page }[e.key];
    if (to !== undefined) move(to);
    else if (e.key === "ArrowRight" && row?.line) unfolded.has(row.key) && row.line.below ? move(here + 1) : toggle(here, true);
    else if (e.key === "ArrowLeft" && row?.line) {
      if (row.line.below && unfolded.has(row.key)) toggle(here, false);
      else { let n = here; while (n > 0 && rows[n].depth >= row.depth) n--; move(n); }
    } else if (e.key === " ") toggle(here);
    else if (e.key === "Enter" && row?.line && !row.line.siblings) location.hash = placeOf(row.line);
    else return;
    e.preventDefault();
  }

  function move(to) {
    here = Math.max(0, Math.min(rows.length - 1, to));
    const top = here * high;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + high > box.scrollTop + box.clientHeight) box.scrollTop = top + high - box.clientHeight;
    draw();
  }

  return { element: box, take };
}
