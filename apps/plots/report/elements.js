// The data of a page, and helpers of its other scripts.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
let pictures = [];  // the charts on the page, with marks that hideTip() removes

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
function hideTip() {
  find("tip").hidden = true;
  pictures.forEach((picture) => picture.mark.replaceChildren());
}

/// Maps values to 0..1 and back; a logarithmic scale drops values that are not positive.
function axis(values, log) {
  const usable = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  let low = usable.reduce((a, b) => Math.min(a, b), Infinity), high = usable.reduce((a, b) => Math.max(a, b), -Infinity);
  if (low > high) [low, high] = [1, 2];
  const room = (Math.abs(low) || 1) * 0.1;
  if (low === high) [low, high] = log ? [low / 1.1, high * 1.1] : [low - room, high + room];
  const f = log ? Math.log : (v) => v, inverse = log ? Math.exp : (v) => v, span = f(high) - f(low);
  return { low, high, log, at: (v) => (v === null || (log && v <= 0) ? NaN : (f(v) - f(low)) / span), value: (t) => inverse(f(low) + t * span) };
}

const VIRIDIS = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"];
const DIVERGING = ["#2166ac", "#67a9cf", "#e8e8e8", "#ef8a62", "#b2182b"];

function colorAt(stops, t) {
  const at = Math.min(1, Math.max(0, t)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
  const part = (stop, k) => parseInt(stop.slice(1 + 2 * k, 3 + 2 * k), 16);
  return [0, 1, 2].map((k) => Math.round(part(stops[i], k) * (i + 1 - at) + part(stops[i + 1], k) * (at - i)));
}

/// A cell for each value, the first row on top; `tip(row, column)` gives the title and the rows of a cell's tooltip.
function grid(rows, scale, tip) {
  const width = rows[0].length, height = rows.length;
  const canvas = element("canvas", { width, height }), context = canvas.getContext("2d"), image = context.createImageData(width, height);
  rows.forEach((row, y) => row.forEach((v, x) => {
    if (Number.isFinite(v)) image.data.set([...colorAt(scale.stops, scale.at(v) || 0), 255], 4 * (y * width + x));
  }));
  context.putImageData(image, 0, 0);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), cell = (part, count) => Math.min(count - 1, Math.max(0, Math.floor(part * count)));
    showTip(event, ...tip(cell((event.clientY - box.top) / box.height, height), cell((event.clientX - box.left) / box.width, width)));
  });
  canvas.addEventListener("pointerleave", hideTip);
  return canvas;
}
function legend({ low, high, stops }) {
  const ends = (digits) => [low, high].map((v) => brief(+v.toPrecision(digits))), short = ends(3);
  const [left, right] = short[0] === short[1] ? ends(5) : short;
  return element("span", { class: "scale" }, left, element("i", { style: `background: linear-gradient(90deg, ${stops})` }), right);
}
