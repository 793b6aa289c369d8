// The runs and the reader's choices.
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
