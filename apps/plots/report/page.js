// Cards, samples, settings, and drawing everything.
const keysOf = (runs) => [...new Set(runs.flatMap((run) => Object.keys(run.settings)))];
const differs = (key) => new Set(members().map((run) => run.settings[key])).size > 1;

/// The card of a run, with the settings that differ between runs; a click shows or hides the run.
function card(run) {
  const own = Object.entries(run.settings).filter(([key, value]) => differs(key) && !key.startsWith("machine.") &&
    members().every((other) => key in other.settings) && !run.name.includes(value)).slice(0, 4);
  const unfinished = run.steps && run.step < run.steps, last = run.train.loss?.y.at(-1), held = run.held_out.y?.at(-1);
  const lines = [
    own.map(([key, value]) => `${key} ${value}`).join(", "),
    run.best && run.held_out.x.at(-1) !== run.best[1] ? `best ${text(run.best[0])} at step ${run.best[1]}` : "",
    (unfinished ? `step ${run.step} of ${run.steps}` : `${run.step} steps`) +
      (run.speed ? `, ${brief(+run.speed.toPrecision(3))} tokens per second` : ""),
    ...run.notes.map((note) => "⚠ " + note)];
  return element("button", { class: "run", color: run.color, "aria-pressed": !state.off.includes(run.name), title: "show or hide",
      onclick: () => choose({ off: toggled(state.off, run.name) }) },
    element("b", { class: data.live ? "live" : "" }, run.name),
    element("span", { class: "big" }, held === undefined ? `loss ${text(last)}` : `held out ${text(held)}, training ${text(last)}`),
    ...lines.filter(Boolean).map((line) => element("span", {}, line)),
    unfinished ? element("progress", { max: run.steps, value: run.step }) : null);
}

function drawSamples() {
  const cards = shown().filter((run) => run.samples.length).map((run) => {
    const body = element("pre", {}, run.samples.at(-1)[1]);
    const pick = element("select", { "aria-label": "step", onchange: () => body.replaceChildren(run.samples[pick.selectedIndex][1]) },
      ...run.samples.map(([step]) => element("option", {}, "step " + step)));
    pick.selectedIndex = run.samples.length - 1;
    return panel("", element("span", { class: "name", color: run.color }, run.name), "", pick, body);
  });
  if (cards.length) find("samples").append(element("div", { class: "maps" }, ...cards));
}

/// A table of rows [name, values ..]; `marks` marks values that differ from the first.
function table(head, rows, marks = false) {
  const row = (tag, [name, ...values]) => element("tr", {}, element("th", {}, name),
    ...values.map((value) => element(tag, { class: marks && value !== values[0] ? "differs" : "" }, value ?? "–")));
  return element("div", { class: "wide" }, element("table", {},
    element("thead", {}, row("th", head)), element("tbody", {}, ...rows.map((values) => row("td", values)))));
}
function drawSettings() {
  const runs = members(), different = keysOf(runs).filter(differs), same = keysOf(runs).filter((key) => !differs(key));
  const head = ["", ...runs.map((run) => element("span", { class: "name", color: run.color }, run.name))];
  if (different.length)
    find("settings").append(panel("", "What differs", "marked where not as in the first run", null,
      table(head, different.map((key) => [key, ...runs.map((run) => run.settings[key])]), true)));
  if (same.length)
    find("settings").append(element("details", { class: "panel" },
      element("summary", {}, `${same.length} settings${runs.length > 1 ? " that all runs share" : ""}`),
      table(["", "value"], same.map((key) => [key, runs[0].settings[key]]))));
}

function section(id, title, note, fill) {
  find(id).replaceChildren();
  fill();
  if (find(id).children.length) find(id).prepend(element("h2", {}, title, " ", element("small", {}, note)));
}
function draw() {
  pictures = [];
  const pick = (group) => button(group, group === state.group, () => choose({ group }));
  find("groups").replaceChildren(...(groups.length > 1 ? groups.map(pick) : []));
  find("runs").replaceChildren(...members().map(card));
  find("half-life").textContent = halfLife() ? `half-life ${text(+halfLife().toPrecision(2))} steps` : "none";
  find("smooth").value = state.smooth;
  find("log-x").checked = state.logX;
  find("charts").replaceChildren();
  CHARTS.map(drawChart).forEach((drawInto) => drawInto());
  section("telemetry", "Connections", "a row each, the first at the bottom; a column an evaluation; one scale for all runs",
    () => STATS.forEach(drawStat));
  section("samples", "Samples", "", drawSamples);
  section("settings", "Settings", "", drawSettings);
}

find("subject").textContent = data.runs.length === 1 ? data.runs[0].name : `${data.runs.length} runs`;
find("written").textContent = "written " + new Date(data.written * 1000).toLocaleString();
find("smooth").addEventListener("input", (event) => choose({ smooth: +event.target.value }));
find("log-x").addEventListener("change", (event) => choose({ logX: event.target.checked }));
let width = document.body.clientWidth;
new ResizeObserver(() => {
  if (width !== document.body.clientWidth) draw();
  width = document.body.clientWidth;
}).observe(document.body);
draw();

// During the run, train_lm rewrites this page. It is not reloaded while a tooltip or selection is visible, and ever more rarely
// if there is no new page, as after a kill.
const age = Date.now() - data.written * 1000;
if (data.live) setInterval(() => { if (find("tip").hidden && !getSelection().toString()) location.reload(); }, Math.max(5000, age / 10));
