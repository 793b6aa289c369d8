// What passes between the layers of a model: maps over depth for one token or the mean of all, the logit lens, losses without parts.
const streamNames = Array.from({ length: data.streams }, (_, i) => `stream ${i}`);
const pairs = streamNames.flatMap((_, i) => streamNames.slice(i + 1).map((_, k) => `${i} · ${i + 1 + k}`));
const several = data.streams > 1, color = "var(--accent)";
let token = null;  // its place in the text; null: all tokens

const mean = (values) => (values.length && values.every(Number.isFinite) ? values.reduce((a, b) => a + b, 0) / values.length : null);
const atToken = (values) => (token === null ? mean(values) : values[token]);
/// A list over sites of lists over rows of tokens as rows over sites, for the chosen token.
const overSites = (sites) => sites[0].map((_, row) => sites.map((site) => (site ? atToken(site[row]) : null)));

/// The text of an id in one line, with a sign for what cannot be seen.
function word(id) {
  const spelled = data.words[id] ?? "";
  return spelled.trim() ? spelled.replaceAll("\n", "⏎") : spelled.replaceAll("\n", "⏎").replaceAll(" ", "␣") || "∅";
}

function scale(values, log) {
  return { ...axis(values.flat(), log), stops: VIRIDIS };
}
const same = (rows) => new Set(rows.flat().filter(Number.isFinite)).size < 2;

/// A panel with a heat map: a row for each name, a column for each site.
function drawMap(where, id, title, note, names, rows, { log = false, tip = (row, i) => `${names[row]}, ${data.sites[i]}` } = {}) {
  if (!rows?.length || !rows.flat().some(Number.isFinite)) return;
  const colors = scale(rows, log), width = rows[0].length;
  const canvas = grid(rows, colors, (row, i) => [tip(row, i), [[{ name: title, color }, text(rows[row][i])]]]);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${title}: ${names.length} rows, ${width} columns, ${text(colors.low)} to ${text(colors.high)}`);
  const map = element("div", { class: "map", style: `--rows: ${Math.max(3, names.length)}` },
    element("div", { class: "names" }, ...names.map((name) => element("span", {}, name))), canvas,
    element("div", { class: "ends" }, element("span", {}, data.sites[0]), element("span", {}, width > 1 ? data.sites[width - 1] : "")));
  find(where).append(panel(id, title, note, same(rows) ? element("small", {}, `${text(rows.flat().find(Number.isFinite))} everywhere`) : legend(colors), map));
}

function drawText() {
  const most = Math.max(...data.losses.filter(Number.isFinite), 1e-9);
  const spelled = (id) => (data.words[id] || "∅").replaceAll("\n", "⏎");
  const end = (id) => (data.words[id]?.includes("\n") ? "\n" : "");
  const first = element("span", {}, spelled(data.ids[0]));
  const tokens = data.losses.flatMap((loss, t) => [element("button", {
    "aria-pressed": token === t, style: `--share: ${(loss ?? most) / most}`, title: `loss ${text(loss)}`, onclick: () => choose(t) },
    spelled(data.ids[t + 1])), end(data.ids[t + 1])]);
  find("text").replaceChildren(
    element("div", { class: "title" }, element("h3", {}, "The text ", element("small", {}, "colored by the loss; choose a token to see what predicts it")),
      button("all tokens", token === null, () => choose(null))), element("div", { class: "words" }, first, ...tokens));
}

function drawStreams() {
  if (several) {
    drawMap("streams", "share", "Share", "of each stream in |x|²", streamNames, overSites(data.share));
    drawMap("streams", "cosine", "Cosine", "between streams", pairs, overSites(data.cosine));
  }
  drawMap("streams", "norm", "Norm", "of each stream", streamNames, overSites(data.norm), { log: true });
  drawMap("streams", "writes", "Layers", "norms of their inputs and outputs", ["input", "output"], [data.read.map(atToken), data.write.map(atToken)], { log: true });
  if (!several) return;
  const weights = data.h_pre.slice(0, data.h_post.length);
  if (weights.some(Boolean)) drawMap("streams", "h_pre", "H_pre", "weights of the streams in a layer's input", streamNames, overSites(known(weights)));
  drawMap("streams", "h_post", "H_post", "weights of a layer's output in the streams", streamNames, overSites(data.h_post));
}
/// Sites without a map have nulls of the others' shape.
const known = (sites) => sites.map((site) => site ?? sites.find(Boolean).map((row) => row.map(() => null)));

function drawMixing() {
  if (!several) return;
  const n = data.streams, matrices = data.h_res.map((site) => site.map(atToken));
  const colors = scale(matrices, false);
  const square = (values, i) => {
    const rows = Array.from({ length: n }, (_, row) => values.slice(row * n, row * n + n));
    return element("figure", {}, element("figcaption", {}, element("span", {}, data.sites[i])),
      grid(rows, colors, (to, from) => [`${data.sites[i]}, stream ${from} into ${to}`, [[{ name: "H_res", color }, text(rows[to][from])]]]));
  };
  find("mixing").append(panel("h_res", "H_res", "how the streams are mixed: a row for each new stream", legend(colors),
    element("div", { class: "squares" }, ...matrices.map(square))));
}

function drawPaths() {
  const writers = data.sites.slice(0, -1);
  drawMap("paths", "gain", "Gain of each path", "from a layer's output, a row each, to the input of a later site; the mean of all tokens", writers, data.gain,
    { tip: (from, to) => `${data.sites[from]} to ${data.sites[to]}` });
}

/// The most likely tokens of a stream before a site.
function guess(site, stream, t) {
  const list = data.lens.likely[site][stream][t], words = [];
  for (let i = 0; i < list.length; i += 2)
    words.push(element("div", { class: list[i] === data.ids[t + 1] ? "next" : "" }, element("span", {}, word(list[i])), `${Math.round(100 * list[i + 1])} %`));
  return element("td", {}, ...words);
}
function drawLens() {
  const readers = several ? [...streamNames, "head"] : ["stream"], streams = readers.map((_, i) => (several ? i : 1));
  drawMap("lens", "lens-loss", "Loss of the lens", "what the last norm and head predict from each stream, and from all as the head reads them", readers,
    overSites(data.lens.loss.map((site) => streams.map((i) => site[i]))));
  const t = token ?? data.losses.length - 1, last = data.sites.length - 1;
  const rows = data.sites.map((_, i) => last - i).map((site) =>
    element("tr", {}, element("th", {}, `before ${data.sites[site]}`), ...streams.map((i) => guess(site, i, t))));
  const head = element("tr", {}, element("th", {}), ...readers.map((name) => element("th", {}, name)));
  find("lens").append(panel("words", "Most likely tokens", `behind “${word(data.ids[t])}”, where the text has “${word(data.ids[t + 1])}”`, null,
    element("div", { class: "wide" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)))));
}

function drawLosses() {
  if (data.changes.length) {
    const cell = (value, percent) => element("td", {}, value === null ? "–" : percent ? `${(100 * value).toFixed(1)} %` : value.toFixed(4));
    const row = (what, loss, recovered) => element("tr", {}, element("th", {}, what), cell(loss), cell(loss === null ? null : loss - data.loss), cell(recovered, true));
    const head = element("tr", {}, ...["", "loss", "added", "comes back"].map((name) => element("th", {}, name)));
    find("losses").append(panel("changes", "Changes", "each rescue is on top of all other changes", null, element("div", { class: "wide" },
      element("table", {}, element("thead", {}, head), element("tbody", {}, row("none", data.loss, null),
        ...data.changes.map((change) => row(change.what, change.loss, change.recovered)))))));
  }
  if (!data.ablations) return;
  const added = (losses) => losses.map((loss) => (loss === null ? null : loss - data.loss));
  const { once, onward, all, alone, write } = data.ablations;
  drawMap("losses", "write-loss", "Without one layer", "loss added where its output is not written", ["write"], [added(write)]);
  if (several) {
    drawMap("losses", "once-loss", "Without one stream", "loss added by zeros in it before one site", streamNames, once.map(added));
    drawMap("losses", "onward-loss", "Without one stream from a site on", "loss added by zeros before this site and all later ones", streamNames, onward.map(added));
    drawMap("losses", "all-loss", "Without all streams", "loss added by zeros in all of them before one site", ["all"], [added(all)]);
    drawMap("losses", "alone-loss", "With one stream alone", "part of the loss that comes back when all streams are zero before a site and one is restored", streamNames,
      alone.map((losses) => losses.map((loss, i) => (loss === null || all[i] === null ? null : (all[i] - loss) / (all[i] - data.loss)))));
  } else {
    drawMap("losses", "once-loss", "Without what came before", "loss added by zeros in the residual stream before one site", ["stream"], once.map(added));
  }
}

function section(id, title, note, fill) {
  find(id).replaceChildren();
  fill();
  if (find(id).children.length) find(id).prepend(element("h2", {}, title, " ", element("small", {}, note)));
}
function choose(chosen) {
  token = chosen;
  draw();
}
function draw() {
  drawText();
  const which = token === null ? "mean of all tokens" : `where “${word(data.ids[token])}” is read`;
  section("streams", several ? "Streams" : "The stream", `a column for each site; ${which}`, drawStreams);
  section("mixing", "Mixing", which, drawMixing);
  section("paths", "Paths", "", drawPaths);
  section("lens", "Logit lens", "", drawLens);
  section("losses", "Without a part", "", drawLosses);
}

find("subject").textContent = `${data.name}: ${data.connection}${several ? `, ${data.streams} streams` : ""}`;
find("loss").textContent = `${data.losses.length} ${data.unit}, loss ${text(data.loss)}`;
draw();
