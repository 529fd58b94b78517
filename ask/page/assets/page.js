// The page: which view is shown, and when it is read anew.
import { ask, follow, same } from "./ask.js";
import { el } from "./dom.js";
import { overview, found } from "./overview.js";
import { object } from "./object.js";
import { deleted, orphans, pending } from "./surveys.js";

const main = document.getElementById("main");
const health = document.getElementById("health");
const waits = document.getElementById("waits");
const query = document.getElementById("query");

const leastRest = 200, mostRest = 1000; // milliseconds between two readings of a view
const patience = 1000; // milliseconds that a user waits without being told for what

let view; // what is shown: { read, show }, and what it has shown last
let version = -1; // how far the server is
let cluster = "";
let told = {}; // what the server has said of its health last
let trouble = ""; // why the view could not be read anew

// route makes the view of the address.
function route() {
  const [path, rest = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const params = Object.fromEntries(new URLSearchParams(rest));
  let words = ["?"];
  try { words = path.split("/").map(decodeURIComponent); } catch { /* it is no address of this page */ }
  switch (words[0]) {
    case "": return overview();
    case "pending": return pending(params);
    case "orphans": return orphans(params);
    case "deleted": return deleted(params);
    case "found": return found(params);
    case "object":
      if (words.length === 4) return object({ kind: words[1], namespace: words[2] === "-" ? "" : words[2], name: words[3] }, params);
  }
  return { name: "", title: "Not found", async read() { return {}; }, show(into) { into.replaceChildren(el("h1", {}, "There is no such view"), el("p", {}, el("a", { href: "#/" }, "To the overview"))); } };
}

// open shows the view of the address. False if it is the one that is shown, looked at in another way.
function open() {
  const next = route();
  if (view?.keep?.(next)) { refresh(view, true); return false; }
  if (view) { view.over = true; view.asking.abort(); }
  waits.textContent = "";
  view = Object.assign(next, { asking: new AbortController() });
  view.version = -1;
  view.again = () => later(next, true);
  for (const a of document.querySelectorAll("header nav a")) {
    if (a.dataset.view === view.name) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  document.title = `${view.title} · Weir${cluster ? ` · ${cluster}` : ""}`;
  main.replaceChildren(el("h1", {}, view.title), el("p", {}, "Reading …"));
  refresh(view, true);
  return true;
}

// refresh reads a view and shows it, and again when the server is further. It rests before that as long as reading it
// took, at most a second; what the user asks for does not wait.
async function refresh(v, anew) {
  if (v.over) return;
  v.anew ||= anew;
  if (v.reading) { v.waits = true; return; }
  clearTimeout(v.timer);
  v.reading = true;
  anew = v.anew;
  v.waits = v.anew = false;
  const began = performance.now();
  v.version = version;
  const waiting = v.shown ? undefined : setInterval(tellWaits, patience, v);
  try {
    const said = await v.read(anew, v.asking.signal, (some) => { if (!v.over) v.show(main, some); });
    if (v.over) return;
    if (said !== same) {
      await v.show(main, said);
      v.shown = true;
    }
    trouble = "";
  } catch (e) {
    if (v.over) return;
    trouble = e.message;
    if (v.shown && e.status !== 404) return; // what was there stays
    v.shown = false;
    main.replaceChildren(el("h1", {}, v.title), el("p", { class: "error", role: "alert" }, e.message),
      e.status === 404 ? el("p", {}, "If it was deleted, kubectl weir history may tell why: ", el("code", {}, "kubectl weir history -A")) : "");
    v.failed?.();
    trouble = ""; // it is said in its place
  } finally {
    clearInterval(waiting);
    if (!v.over) waits.textContent = "";
    tell(told);
    v.reading = false;
    v.next = performance.now() + Math.min(mostRest, Math.max(leastRest, performance.now() - began));
    if (v.waits) v.anew ? refresh(v, true) : later(v);
  }
}

// tellWaits says what a view waits for that is not there yet: lists, which the server is asked about, or else its own answers.
async function tellWaits(v) {
  let kinds = [];
  waits.textContent ||= `Waiting for kubectl weir ui, which is asked for ${v.needs}.`;
  try { kinds = (await ask("state", {}, v.asking.signal)).kinds.filter((k) => k.waiting).map((k) => k.kind); } catch { return; }
  if (v.over || v.shown || !v.reading) return;
  waits.textContent = kinds.length ? `Waiting for the first list of ${kinds.slice(0, 5).join(", ")}${kinds.length > 5 ? ` and ${kinds.length - 5} more kinds` : ""}.`
    : `Waiting for the API server, which is asked for ${v.needs}.`;
}

// later refreshes a view when it has rested; anew: what was answered before does not count.
function later(v, anew = false) {
  v.anew ||= anew;
  if (v.reading) { v.waits = true; return; }
  clearTimeout(v.timer);
  v.timer = setTimeout(() => refresh(v, false), Math.max(0, (v.next ?? 0) - performance.now()));
}

// tell says whether what is shown is what is there.
function tell(h) {
  told = h;
  const lines = trouble && !h.lost ? [`This view could not be read anew: ${trouble}`] : [];
  if (h.lost) lines.push(`Not connected to the cluster, so this page shows what was: ${h.lost}`);
  else {
    if (h.waiting) lines.push(`Reading: ${h.waiting} kinds have not been listed yet.`);
    const behind = Object.keys(h.behind || {});
    if (behind.length) lines.push(`Left out, because they cannot be followed: ${behind.slice(0, 5).join(", ")}${behind.length > 5 ? ` and ${behind.length - 5} more` : ""}.`);
    if (h.denied) lines.push(`Left out: ${h.denied} kinds that you may not list or watch.`);
  }
  const text = lines.join(" ");
  if (health.textContent !== text) health.textContent = text;
  health.className = h.lost ? "lost" : "";
}

addEventListener("hashchange", () => { if (open()) main.focus({ preventScroll: true }); });
document.getElementById("skip").addEventListener("click", (e) => { e.preventDefault(); main.focus(); });
document.getElementById("search").addEventListener("submit", (e) => {
  e.preventDefault();
  if (query.value.trim()) location.hash = `#/found?q=${encodeURIComponent(query.value.trim())}`;
});
addEventListener("keydown", (e) => {
  if (e.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { e.preventDefault(); query.focus(); query.select(); }
});

follow((news) => {
  tell(news.health);
  version = news.version;
  if (view && (view.version < version || view.aged?.())) later(view);
}, () => tell({ lost: "kubectl weir ui does not answer; if it has ended, start it again, and open the address that it prints." }));

ask("state").then((s) => {
  cluster = s.cluster;
  document.getElementById("cluster").textContent = cluster;
  if (view) document.title = `${view.title} · Weir · ${cluster}`;
}).catch(() => {}); // what fails is said where the view is
open();
