#!/usr/bin/python3 -B
"""Compares the mixings: tables in Markdown from the last run of bench_mixings, from mixing_facts and from the results.json of
compare_connections, one per seed, and a PNG of each. Omits results whose files are not given."""

import argparse
import collections
import json
import pathlib
import re
import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Okabe and Ito's colors, which readers with any color vision can distinguish, and a marker each.
COLORS, MARKERS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#000000"), "osD^vX"
EXACT = 1e-11  # in f64
NAME = re.compile(r"mixings/(?P<mixing>\w+)/(?P<matrices>\d+)x(?P<n>\d+)x\d+/(?P<run>\w+)/(?P<form>\w+)")
GAINS = {"forward_gain": "from the first sublayer to this one", "backward_gain": "from this sublayer to the last one",
         "similarity": "streams that enter the sublayer"}


def print_table(title, header, rows):
    print(f"\n{title}\n")
    print(f"| {' | '.join(header)} |", "---".join("|" * (len(header) + 1)), *(f"| {' | '.join(row)} |" for row in rows), sep="\n")


def short(value):
    return f"{value:.2g}" if 1e-3 <= abs(value) < 1e3 or value == 0 else f"{value:.0e}".replace("e-0", "e-")


# Invariants and initialization.

def error(errors, key):
    """`exact`, one error for each deviation of the logits, or a dash if the mixing has no such invariant."""
    values = [e[key] for e in errors]
    if max(values) < EXACT:
        return "exact"
    return "–" if values[0] > 0.1 else " / ".join(map(short, values))


def print_facts(facts):
    rows = [[f"`{m['name']}`", str(m["logits"]), *(error(m["errors"], key) for key in ("row", "column", "orthogonality")),
             "yes" if min(e["smallest_entry"] for e in m["errors"]) < -1e-5 else "", short(m["from_identity"]) if m["from_identity"] > EXACT else "0",
             short(m["gradient"]) if "gradient" in m else "–"] for m in facts["mixings"]]
    deviations = " / ".join(f"{d:g}" for d in facts["deviations"])
    print_table(f"n = 4, f64, logits of standard deviation {deviations}", ["mixing", "logits", "rows", "columns", "H Hᵀ = I", "negative",
                "start: distance from I", "start: gradient"], rows)


def draw_convergence(facts, picture):
    figure, grid = plt.subplots(1, 2, figsize=(10.5, 4.4), sharex=True, sharey=True, layout="constrained")
    titles = {"sinkhorn": "sinkhorn: normalizations of columns and rows", "newton": "newton: steps"}
    for axes, (name, title) in zip(grid, titles.items()):
        first = 1 if name == "sinkhorn" else 0
        for curves, deviation, color, marker in zip(facts["convergence"][name], facts["deviations"], COLORS, MARKERS):
            for key, line in (("median", "-"), ("p99", ":")):
                x = range(first, first + len(curves[key]))
                axes.plot(x, curves[key], line, color=color, marker=marker, markevery=(0, 5), linewidth=1.5, markersize=5,
                          markerfacecolor="white", label=f"{deviation:g}" if line == "-" else None)
        axes.set(yscale="log", ylim=(1e-16, 5), xlabel=title)
        axes.grid(alpha=0.3)
    grid[0].axvline(20, color="#999999", linewidth=0.8)
    grid[0].annotate("the default", (20, 3e-16), xytext=(-4, 0), textcoords="offset points", ha="right", color="#666666", fontsize="small")
    grid[0].set_ylabel("largest column error (rows are exact)")
    grid[1].legend(title="standard deviation\nof the logits", fontsize="small", title_fontsize="small", loc="upper right", bbox_to_anchor=(1, 0.97))
    figure.suptitle("How fast the columns get there, n = 4, f64 (solid: median, dotted: 99th percentile of 1,000 draws)", fontsize="medium")
    save(figure, picture)


# Cost.

def nanoseconds(source):
    """{(mixing, n, pass): ns per matrix} of the kernels, of the last run."""
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    times = {}
    for line in lines:
        name = NAME.fullmatch(line["name"])
        if name and name["form"] == "fused" and line["date"] == lines[-1]["date"]:
            times[name["mixing"], int(name["n"]), name["run"]] = 1e9 * line["seconds"] / int(name["matrices"])
    return times


def print_times(times):
    def cell(mixing, n, run):
        return f"{times[mixing, n, run]:,.0f}" if (mixing, n, run) in times else ""

    cases = [(n, run) for n in (2, 4, 8) for run in ("forward", "vjp")]
    names = list(dict.fromkeys(mixing for mixing, _, _ in times))
    print_table("ns a matrix, f32, one thread", ["mixing", *(f"n = {n} {run}" for n, run in cases)],
                [[f"`{name}`", *(cell(name, n, run) for n, run in cases)] for name in names])


# Training results.

def read_training(folders):
    """{entry: its results, one per seed}, the lowest loss first. Steps take as long as those of each run's first entry."""
    runs = collections.defaultdict(list)
    for folder in folders:
        results = json.loads((folder / "results.json").read_text())["results"]
        for result in results:
            runs[result["connection"].removeprefix("mhc+")].append(result | {"time": result["ms_per_step"] / results[0]["ms_per_step"]})
    return dict(sorted(runs.items(), key=lambda item: mean(item[1], "held_out_loss")))


def mean(results, key):
    return statistics.mean(result[key] for result in results)


def depths(results, key):
    """The mean over the seeds at each depth; empty where there is none."""
    values = [result["by_depth"][key] for result in results]
    return [] if None in values[0] else [statistics.mean(at) for at in zip(*values)]


def print_training(training):
    rows = []
    for name, results in training.items():
        losses = [result["held_out_loss"] for result in results]
        similarity = depths(results, "similarity")
        rows.append([f"`{name}`", f"{results[0]['parameters']:,}", f"{mean(results, 'time'):.2f}", f"{statistics.mean(losses):.3f}",
                     f"{min(losses):.3f} .. {max(losses):.3f}", f"{mean(results, 'forward_gain'):.3f}", f"{mean(results, 'backward_gain'):.3f}",
                     f"{min(similarity):.2f}" if similarity else "–"])
    print_table("Training", ["mixing", "parameters", "time of a step", "held-out loss", "of the seeds", "forward gain", "backward gain", "least similarity"], rows)


def draw_losses(training, picture):
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.3 * len(training)), layout="constrained")
    for y, results in enumerate(training.values()):
        losses = [result["held_out_loss"] for result in results]
        axes.plot([min(losses), max(losses)], [y, y], color="#bbbbbb", linewidth=1.2, zorder=1)
        for loss, color, marker in zip(losses, COLORS, MARKERS):
            axes.plot(loss, y, marker, color=color, markersize=6, markerfacecolor="white", markeredgewidth=1.5)
        axes.plot(statistics.mean(losses), y, "|", color="#000000", markersize=14, markeredgewidth=2.2)
    seeds = [plt.Line2D([], [], linestyle="", marker=marker, color=color, markerfacecolor="white", markeredgewidth=1.5, label=f"seed {seed}")
             for seed, (color, marker, _) in enumerate(zip(COLORS, MARKERS, losses), 1)]
    axes.legend(handles=[*seeds, plt.Line2D([], [], linestyle="", marker="|", markersize=12, markeredgewidth=2.2, color="#000000", label="mean")],
                loc="upper left", bbox_to_anchor=(1.01, 1), fontsize="small")
    axes.set_yticks(range(len(training)), labels=training)
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    axes.set(xlabel="held-out cross-entropy [nats per character]")
    axes.set_title("Held out, n = 4. Differences below the spread of the seeds mean nothing.", fontsize="medium")
    save(figure, picture)


def draw_gains(training, picture):
    """One row per mixing, one column per sublayer, since curves would overlap. White is the value of the identity."""
    names = [name for name in training if name != "residual"]
    figure, grid = plt.subplots(1, 3, figsize=(13, 0.9 + 0.32 * len(names)), sharey=True, layout="constrained")
    for axes, (key, about) in zip(grid, GAINS.items()):
        rows = [depths(training[name], key) for name in names]
        distance = [[abs(value - 1) for value in row] for row in rows]
        darkest = max(map(max, distance))
        axes.imshow(distance, aspect="auto", cmap="Blues", vmin=0, vmax=darkest)
        for y, row in enumerate(rows):
            for x, value in enumerate(row):
                color = "white" if distance[y][x] > 0.5 * darkest else "black"
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize="small", color=color)
        axes.set_xticks(range(len(rows[0])), labels=range(1, len(rows[0]) + 1))
        axes.set_title(f"{key.replace('_', ' ')}: {about}", fontsize="medium")
        axes.set_xlabel("sublayer")
    grid[0].set_yticks(range(len(names)), labels=names)
    save(figure, picture)


def save(figure, picture):
    figure.savefig(picture, dpi=110)
    plt.close(figure)
    print(f"\n{picture}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=pathlib.Path, help="bench_mixings.jsonl, as summarize.py writes it")
    parser.add_argument("--facts", type=pathlib.Path, help="output of mixing_facts")
    parser.add_argument("--training", nargs="+", type=pathlib.Path, metavar="FOLDER", help="results of compare_connections")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder of the pictures")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.facts:
        facts = json.loads(arguments.facts.read_text())
        print_facts(facts)
        draw_convergence(facts, arguments.out / "convergence.png")
    if arguments.times:
        print_times(nanoseconds(arguments.times))
    if arguments.training:
        training = read_training(arguments.training)
        print_training(training)
        draw_losses(training, arguments.out / "loss.png")
        draw_gains(training, arguments.out / "gains.png")


if __name__ == "__main__":
    main()
