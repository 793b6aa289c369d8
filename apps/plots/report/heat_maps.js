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
  const varies = maps.some((map) => map.querySelector("canvas"));
  find("telemetry").append(panel("heat-" + key, title, note, varies ? legend(scale) : null, element("div", { class: "maps" }, ...maps)));
}

function heatMap(run, key, scale) {
  const columns = run.telemetry[key], steps = run.telemetry.x, depth = Math.max(...columns.map((column) => column.length));
  const values = columns.flat().filter((v) => v !== null), { low, high } = axis(values, false), constant = new Set(values).size < 2;
  const range = constant ? (values.length ? `${text(values[0])} everywhere` : "none") : `${text(low)} to ${text(high)}`;
  const name = element("figcaption", {}, run.name, " ", element("span", {}, range));
  if (constant) return element("figure", { color: run.color }, name);
  const rows = Array.from({ length: depth }, (_, row) => columns.map((column) => column[depth - 1 - row]));
  const canvas = grid(rows, scale, (row, i) => [`step ${steps[i]}, connection ${depth - 1 - row}`, [[run, text(rows[row][i])]]]);
  return element("figure", { color: run.color }, name, canvas,
    element("div", { class: "ends" }, element("span", {}, "step " + steps[0]), element("span", {}, steps.length > 1 ? steps.at(-1) : "")));
}
