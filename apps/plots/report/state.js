// The data, the reader's choices, and helpers of the other scripts.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const groups = [...new Set(data.runs.map((run) => run.group))];
for (const group of groups)
  data.runs.filter((run) => run.group === group).forEach((run, i) => Object.assign(run, { color: `var(--c${i % 8})`, dashed: i >= 8 }));

// Choices are kept in the address, for reloads and bookmarks.
const state = { group: groups[0], off: [], smooth: 35, minus: false, log: ["grad_norm"], logX: false };
try {
  Object.assign(state, JSON.parse(decodeURIComponent(location.hash.slice(1))));
} catch { /* none yet */ }
if (!groups.includes(state.group)) state.group = groups[0];

function choose(changes) {
  Object.assign(state, changes);
  history.replaceState(null, "", "#" + encodeURIComponent(JSON.stringify(state)));
  draw();
}
const toggled = (list, item) => (list.includes(item) ? list.filter((each) => each !== item) : [...list, item]);
const members = () => data.runs.filter((run) => run.group === state.group);
const shown = () => members().filter((run) => !state.off.includes(run.name));

/// An HTML or SVG element; `color` sets the color of a run, `onclick` and the like listen.
function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "circle", "rect", "g"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "color") made.style.setProperty("--color", value);
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
const button = (label, pressed, click) => element("button", { "aria-pressed": pressed, onclick: click }, label);
const panel = (id, title, note, right, ...body) => element("div", { class: "panel", id },
  element("div", { class: "title" }, element("h3", {}, title, " ", element("small", {}, note ?? "")), right), ...body);

function text(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return size && (size < 1e-4 || size >= 1e6) ? value.toExponential(2) : String(+value.toPrecision(5));
}
/// A shorter number, for axes.
function brief(value) {
  const size = Math.abs(value);
  return size >= 1e4 && size < 1e6 ? +(value / 1e3).toPrecision(4) + "k" : text(value).replace(/\.?0+e/, "e");
}

/// Rows are [run, value].
function showTip(event, title, rows) {
  const tip = find("tip");
  tip.replaceChildren(element("b", {}, title), ...rows.map(([run, value]) =>
    element("div", {}, element("span", {}, element("i", { color: run.color }), run.name), value)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect(), below = event.clientY + 18;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4)) + "px";
  tip.style.top = Math.max(4, below + height > innerHeight ? event.clientY - height - 14 : below) + "px";
}
