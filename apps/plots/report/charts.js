// Curves over steps: axes, smoothing, the pointer.
const CHARTS = [
  { key: "loss", title: "Training loss", note: (run) => run.unit, loss: true, smooth: true },
  { key: "held_out", title: "Held-out loss", note: (run) => run.unit, loss: true, dots: true },
  { key: "grad_norm", title: "Gradient norm", note: () => "before clipping", smooth: true },
  { key: "learning_rate", title: "Learning rate" },
  { key: "speed", title: "Speed", note: () => "tokens per second", smooth: true },
];

function ticks({ low, high, log }, most) {
  const found = [];
  if (log && high / low > 4) {
    const decades = Math.log10(high / low), every = Math.ceil(decades / most);
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); ++e)
      for (const m of decades < 3 ? [1, 2, 5] : [1]) if (e % every === 0) found.push(m * 10 ** e);
    return found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  }
  const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * unit >= rough) * unit;
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; ++i) found.push(+(i * step).toPrecision(12));
  return found;
}

const halfLife = () => Math.max(1, ...members().map((run) => run.step)) * 0.2 * (state.smooth / 100) ** 3;
/// An exponential moving average over steps, corrected for its start.
function smoothed(x, y) {
  let average = 0, weight = 0, before = 0;
  return y.map((v, i) => {
    if (v === null) return null;
    const keep = halfLife() ? 0.5 ** ((x[i] - before) / halfLife()) : 0;
    [average, weight, before] = [keep * average + (1 - keep) * v, keep * weight + (1 - keep), x[i]];
    return average / weight;
  });
}

/// Subtracts the first run from all, which separates runs whose curves coincide.
const subtracts = (chart) => state.minus && chart.loss && shown().length > 1;
function minus({ x, y }, first) {
  const theirs = new Map(first.x?.map((step, i) => [step, first.y[i]]));
  return { x, y: y?.map((v, i) => (v === null || !Number.isFinite(theirs.get(x[i])) ? null : v - theirs.get(x[i]))) };
}
const curveOf = (chart, run) => (chart.dots ? run.held_out : { x: run.train.x, ...run.train[chart.key] });

/// The lines of a chart, one per run.
function seriesOf(chart) {
  return shown().map((run) => {
    const curve = subtracts(chart) ? minus(curveOf(chart, run), curveOf(chart, shown()[0])) : curveOf(chart, run);
    if (!curve.y) return { run, x: [], y: [] };
    if (chart.smooth) curve.soft = smoothed(curve.x, curve.y);
    return { run, ...curve };
  }).filter((series) => series.y.some((v) => v !== null));
}

/// A path with gaps where there is no number.
function pathOf(x, y) {
  let pen = "M", path = "";
  x.forEach((at, i) => {
    const drawn = Number.isFinite(at) && Number.isFinite(y[i]);
    if (drawn) path += `${pen}${at.toFixed(1)} ${y[i].toFixed(1)}`;
    pen = drawn && path ? "L" : "M";
  });
  return path;
}

/// Puts the panel on the page, and returns a function that draws into it once all panels are placed and its width is known.
function drawChart(chart) {
  const series = seriesOf(chart), log = state.log.includes(chart.key) && !subtracts(chart), height = 250;
  if (!series.length) return () => {};
  const against = chart.loss && shown().length > 1
    ? button("minus " + shown()[0].name, state.minus, () => choose({ minus: !state.minus })) : null;
  const svg = element("svg", { height, role: "img", "aria-label": chart.title });
  find("charts").append(panel("chart-" + chart.key, chart.title, chart.note?.(series[0].run),
    element("span", {}, against, " ", button("log", log, () => choose({ log: toggled(state.log, chart.key) }))), svg));
  return () => drawCurves({ chart, series, svg, log, left: 46, right: svg.getBoundingClientRect().width - 14, top: 8, bottom: height - 22 });
}

function drawCurves(picture) {
  const { chart, series, svg, log, left, right, top, bottom } = picture;
  const x = axis(shown().flatMap((run) => [...run.train.x, ...(run.held_out.x ?? [])]), state.logX);
  const y = axis(series.flatMap((s) => [...s.y, ...(s.low ?? []), ...(s.high ?? [])]), log);
  const across = (v) => left + x.at(v) * (right - left), down = (v) => bottom - y.at(v) * (bottom - top);
  for (const v of ticks(y, 5))
    svg.append(element("line", { class: "grid", x1: left, x2: right, y1: down(v), y2: down(v) }),
      element("text", { x: left - 5, y: down(v) + 4, "text-anchor": "end" }, brief(v)));
  for (const v of ticks(x, right / 75)) svg.append(element("text", { x: across(v), y: bottom + 17, "text-anchor": "middle" }, brief(v)));
  for (const { run, ...s } of series) {
    const xs = s.x.map(across), ys = s.y.map(down), color = run.color;
    const draw = (name, d) => svg.append(element("path", { class: name, color, d }));
    if (s.low) draw("band", pathOf([...xs, ...xs.toReversed()], [...s.high.map(down), ...s.low.map(down).toReversed()]));
    if (s.soft) draw("curve raw", pathOf(xs, ys));
    draw(run.dashed ? "curve dashed" : "curve", pathOf(xs, (s.soft ?? s.y).map(down)));
    if (chart.dots || xs.length === 1) xs.forEach((at, i) => Number.isFinite(ys[i]) && svg.append(dot(run, at, ys[i], xs.length > 60 ? 1.5 : 3)));
    if (chart.key === "loss")  // steps that were not finite
      for (const step of run.bad) draw("bad", `M${across(step) - 3} ${top}l6 6m-6 0l6 -6`);
  }
  Object.assign(picture, { x, across, down, mark: element("g") });
  svg.append(picture.mark);
  follow(picture);
  pictures.push(picture);
}
const dot = (run, cx, cy, r) => element("circle", { class: "dot", color: run.color, cx, cy, r });

/// Marks the step under the pointer in all charts.
function follow({ series, svg, x, across, down, left, right, mark }) {
  svg.addEventListener("pointermove", (event) => {
    const step = x.value((event.clientX - svg.getBoundingClientRect().left - left) / (right - left));
    const distance = (s, i) => Math.abs(s.x[i] - step);
    const rows = series.map((s) => ({ s, i: s.x.reduce((best, _, i) => (distance(s, i) < distance(s, best) ? i : best), 0) }));
    const at = rows[0].s.x[rows[0].i];
    pictures.forEach((picture) => markStep(picture, at));
    for (const { s, i } of rows) if (Number.isFinite(down(s.y[i]))) mark.append(dot(s.run, across(s.x[i]), down((s.soft ?? s.y)[i]), 4));
    showTip(event, `step ${at}${series[0].low ? ", mean, least to most" : ""}`, rows.map(({ s, i }) => [s.run, [
      text(s.y[i]), s.soft && halfLife() ? `smooth ${text(s.soft[i])}` : "", s.low ? `${text(s.low[i])} to ${text(s.high[i])}` : "",
      s.x[i] === at ? "" : `at ${s.x[i]}`].filter(Boolean).join(", ")]));
  });
  svg.addEventListener("pointerleave", hideTip);
}
function markStep({ x, across, mark, top, bottom }, step) {
  const at = across(Math.min(x.high, Math.max(x.low, step)));
  mark.replaceChildren(element("line", { class: "cursor", x1: at, x2: at, y1: top, y2: bottom }));
}
