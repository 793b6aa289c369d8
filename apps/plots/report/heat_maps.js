// Telemetry: a column per evaluation, a row per connection, the first at the bottom; all runs share a scale.
const STATS = [
  ["composed_forward_gain", "Gain, forward", "from the first connection to this one", "gain"],
  ["composed_backward_gain", "Gain, backward", "from this connection to the last one", "gain"],
  ["forward_gain", "Gain of each, forward", "largest row sum", "gain"],
  ["backward_gain", "Gain of each, backward", "largest column sum", "gain"],
  ["row_error", "Row error", "largest |row sum − 1|", "error"],
  ["column_error", "Column error", "largest |column sum − 1|", "error"],
  ["similarity", "Stream similarity", "mean cosine between streams", "share"],
  ["saturation", "Saturated gates", "share below 0.01 or above 0.99", "share"],
];
const VIRIDIS = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"];
const DIVERGING = ["#2166ac", "#67a9cf", "#e8e8e8", "#ef8a62", "#b2182b"];

function colorAt(stops, t) {
  const at = Math.min(1, Math.max(0, t)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
  const part = (stop, k) => parseInt(stop.slice(1 + 2 * k, 3 + 2 * k), 16);
  return [0, 1, 2].map((k) => Math.round(part(stops[i], k) * (i + 1 - at) + part(stops[i + 1], k) * (at - i)));
}

/// Gains are logarithmic with 1 in the middle, errors logarithmic. An error of 0 gets the color of the smallest one.
function scaleOf(values, kind) {
  const all = axis(values, kind !== "share"), most = Math.max(all.high, 1 / all.low, 1.01);
  if (kind === "gain") return { ...axis([1 / most, most], true), stops: DIVERGING };
  return { ...axis([kind === "error" ? Math.max(all.low, all.high * 1e-8) : all.low, all.high], all.log), stops: VIRIDIS };
}

function drawStat([key, title, note, kind]) {
  const runs = shown().filter((run) => run.telemetry.x.length), values = runs.flatMap((run) => run.telemetry[key].flat());
  if (!values.some((v) => v !== null)) return;
  const scale = scaleOf(values, kind), maps = runs.map((run) => heatMap(run, key, scale));
  const legend = element("span", { class: "scale" }, brief(+scale.low.toPrecision(3)),
    element("i", { style: `background: linear-gradient(90deg, ${scale.stops})` }), brief(+scale.high.toPrecision(3)));
  const varies = maps.some((map) => map.querySelector("canvas"));
  find("telemetry").append(panel("heat-" + key, title, note, varies ? legend : null, element("div", { class: "maps" }, ...maps)));
}

function heatMap(run, key, scale) {
  const columns = run.telemetry[key], steps = run.telemetry.x, width = columns.length, depth = Math.max(...columns.map((column) => column.length));
  const values = columns.flat().filter((v) => v !== null), { low, high } = axis(values, false), constant = new Set(values).size < 2;
  const range = constant ? (values.length ? `${text(values[0])} everywhere` : "none") : `${text(low)} to ${text(high)}`;
  const name = element("figcaption", {}, run.name, " ", element("span", {}, range));
  if (constant) return element("figure", { color: run.color }, name);
  const canvas = element("canvas", { width, height: depth }), context = canvas.getContext("2d"), image = context.createImageData(width, depth);
  columns.forEach((column, i) => column.forEach((v, connection) => {
    if (v !== null) image.data.set([...colorAt(scale.stops, scale.at(v) || 0), 255], 4 * ((depth - 1 - connection) * width + i));
  }));
  context.putImageData(image, 0, 0);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), cell = (part, count) => Math.min(count - 1, Math.max(0, Math.floor(part * count)));
    const i = cell((event.clientX - box.left) / box.width, width), connection = depth - 1 - cell((event.clientY - box.top) / box.height, depth);
    showTip(event, `step ${steps[i]}, connection ${connection}`, [[run, text(columns[i][connection])]]);
  });
  canvas.addEventListener("pointerleave", hideTip);
  return element("figure", { color: run.color }, name, canvas,
    element("div", { class: "ends" }, element("span", {}, "step " + steps[0]), element("span", {}, steps.length > 1 ? steps.at(-1) : "")));
}
