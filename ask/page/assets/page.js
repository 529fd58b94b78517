// The page: which view is shown, and when it is read anew.
import { ask } from "./ask.js";
import { el, placeOf } from "./dom.js";
import { overview } from "./overview.js";
import { object } from "./object.js";
import { deleted, orphans, pending } from "./surveys.js";

const main = document.getElementById("main");
const health = document.getElementById("health");
const waits = document.getElementById("waits");
const query = document.getElementById("query");

const often = 10_000; // milliseconds between two readings of a view, or ten times as long as one takes
const patience = 1000; // milliseconds that a user waits without being told for what

let view; // what is shown: { title, needs, read, show }
let here = {}; // the cluster, and the flags that select it in commands

// route makes the view of the address.
function route() {
  const [path, rest = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const params = Object.fromEntries(new URLSearchParams(rest));
  let words = ["?"];
  try { words = path.split("/").map(decodeURIComponent); } catch { /* it is no address of this page */ }
  switch (words[0]) {
    case "": return overview(here);
    case "pending": return pending(params);
    case "orphans": return orphans(params);
    case "deleted": return deleted(params, here);
    case "object":
      if (words.length === 4) return object({ kind: words[1], namespace: words[2] === "-" ? "" : words[2], name: words[3] }, params, here);
  }
  return { name: "", title: "Not found", async read() { return {}; }, show(into) { into.replaceChildren(el("h1", {}, "There is no such view"), el("p", {}, el("a", { href: "#/" }, "To the overview"))); } };
}

// open shows the view of the address.
function open() {
  if (view) { view.over = true; view.asking.abort(); clearTimeout(view.timer); }
  waits.textContent = health.textContent = "";
  view = Object.assign(route(), { asking: new AbortController() });
  for (const a of document.querySelectorAll("header nav a")) {
    if (a.dataset.view === view.name) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  document.title = `${view.title} · Weir${here.cluster ? ` · ${here.cluster}` : ""}`;
  main.replaceChildren(el("h1", {}, view.title), el("p", {}, "Reading …"));
  refresh(view);
}

// refresh reads a view and shows it, and again later. What was there stays when it cannot be read.
async function refresh(v) {
  if (v.over || v.reading) return;
  clearTimeout(v.timer);
  v.reading = true;
  const began = performance.now();
  const waiting = setTimeout(() => { if (!v.over && !v.shown) waits.textContent = `Waiting for the API server, which is asked for ${v.needs}.`; }, patience);
  try {
    const said = await v.read(v.asking.signal, (some) => { if (!v.over) v.show(main, some); });
    if (v.over) return;
    v.show(main, said);
    v.shown = true;
    health.textContent = health.className = "";
  } catch (e) {
    if (v.over) return;
    if (v.shown) {
      health.textContent = `This page shows what was: ${e.message}`;
      health.className = "lost";
    } else {
      main.replaceChildren(el("h1", {}, v.title), el("p", { class: "error", role: "alert" }, e.message));
    }
  } finally {
    clearTimeout(waiting);
    v.reading = false;
    if (!v.over) {
      waits.textContent = "";
      v.timer = setTimeout(() => { if (!document.hidden) refresh(v); }, Math.max(often, 10 * (performance.now() - began)));
    }
  }
}

addEventListener("hashchange", () => { open(); main.focus({ preventScroll: true }); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && view) refresh(view); });
document.getElementById("skip").addEventListener("click", (e) => { e.preventDefault(); main.focus(); });
document.getElementById("search").addEventListener("submit", (e) => {
  e.preventDefault();
  const [kind, ...rest] = query.value.trim().split(/[\s/]+/);
  if (kind && rest.length) location.hash = placeOf({ kind, namespace: rest.length > 1 ? rest[0] : "", name: rest.at(-1) });
});
addEventListener("keydown", (e) => {
  if (e.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { e.preventDefault(); query.focus(); query.select(); }
});

ask("state").then((s) => {
  here = s;
  document.getElementById("cluster").textContent = here.cluster;
}).catch(() => {}).finally(open); // what fails is said where the view is
