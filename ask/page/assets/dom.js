// Making elements.

// el makes an element: attributes, listeners as onclick, and children, which are text unless they are elements.
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function fill(e, attributes, children) {
  for (const [k, v] of Object.entries(attributes)) {
    if (v === undefined || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== ""));
  return e;
}

// counted is a number with what there are so many of.
export function counted(n, one, many) { return `${n.toLocaleString("en")} ${n === 1 ? one : many}`; }

// placeOf is the address of an object on this page.
export function placeOf(o, cascade) {
  const path = ["object", o.kind, o.namespace || "-", o.name].map(encodeURIComponent).join("/");
  return `#/${path}${cascade && cascade !== "background" ? `?cascade=${cascade}` : ""}`;
}

// titleOf names an object.
export function titleOf(o) { return `${o.kind}/${o.namespace ? `${o.namespace}/` : ""}${o.name}`; }

// nameOf names an object of a plan, with the namespace where that is another one.
export function nameOf(o, namespace) { return o.namespace === namespace ? `${o.kind}/${o.name}` : titleOf(o); }

// linkTo is a link to an object.
export function linkTo(o) { return el("a", { href: placeOf(o) }, titleOf(o)); }

// unseen is what a terminal does not show, or acts on: what is no letter, mark, number, punctuation, symbol or space.
const unseen = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

// quoted is a text as one word of a command, in one line: as the commands of kubectl weir have it (words.Shell).
function quoted(text) {
  if (!unseen.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  const octets = (c) => [...new TextEncoder().encode(c)].map((o) => `\\${o.toString(8).padStart(3, "0")}`).join("");
  return `$'${Array.from(text, (c) => (c === "\n" ? "\\n" : unseen.test(c) || c === "'" || c === "\\" ? octets(c) : c)).join("")}'`;
}

// kubectl is how kubectl takes an object in a command, whatever its name is to a shell.
export function kubectl({ kind, namespace, name }) {
  const plain = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/.test(name);
  return (plain ? `${kind} ${name}` : quoted(`${kind}/${name}`)) + (namespace ? ` -n ${namespace}` : "");
}

// commandBox shows a command, to be copied.
export function commandBox(text) {
  const said = el("span", { role: "status", class: "hidden" });
  const copy = el("button", {
    type: "button", onclick: async () => {
      try { await navigator.clipboard.writeText(text); said.textContent = "Copied."; copy.textContent = "Copied"; }
      catch { said.textContent = copy.textContent = "Select it to copy"; }
    },
  }, "Copy");
  return el("div", { class: "command" }, el("pre", {}, text), copy, said);
}

// crumbs are the way from the overview to a view: [title, address] of each step.
export function crumbs(...steps) {
  return el("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, el("ol", {}, [["Overview", "#/"], ...steps].map(([title, href]) =>
    el("li", {}, href ? el("a", { href }, title) : title))));
}

// unreadBox tells once, at the end, what could not be read.
export function unreadBox(unread) {
  const lines = (unread || []).map((u) => `${u.kind}: ${u.reason}`);
  if (!lines.length) return null;
  return el("section", {}, el("h2", {}, "Incomplete"),
    el("p", {}, "This could not be read, so the page may lack what depends on it:"), el("ul", {}, lines.map((l) => el("li", {}, l))));
}

// classOf is the colour and the shape of what the plan says about an object.
export function classOf(symbol) { return { "-": "s-goes", "!": "s-waits", "~": "s-kept", "?": "s-doubt" }[symbol] || ""; }

// renew puts children in the place of those that are there, if they are others. Focus stays.
export function renew(into, ...children) {
  const next = el("div", {}, ...children);
  if (next.innerHTML === into.innerHTML) return;
  const active = into.contains(document.activeElement) ? document.activeElement : null;
  const attribute = ["id", "data-choice", "href"].find((a) => active?.hasAttribute(a));
  const focused = attribute && `[${attribute}="${CSS.escape(active.getAttribute(attribute))}"]`;
  into.replaceChildren(...next.childNodes);
  if (focused) into.querySelector(focused)?.focus({ preventScroll: true });
}
