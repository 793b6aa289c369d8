#!/usr/bin/python3 -B
"""Draws the last run of bench_mhc: speed-up by C, time by n and share of copy bandwidth, one PNG each."""

import argparse
import collections
import json
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Okabe and Ito's colors, which readers with any color vision can distinguish, and a marker each.
STYLES = {
    "mhc": ("mHC connection", "#0072b2", "D"),
    "hyper_connection": ("hyper-connection", "#e69f00", "s"),
    "mhc_layer": ("MHCLayer", "#009e73", "^"),
    "stream_read": ("stream_read", "#d55e00", "o"),
    "stream_write": ("stream_write", "#cc79a7", "v"),
    "sinkhorn_knopp": ("sinkhorn_knopp", "#000000", "X"),
}
PASSES = {"forward": "forward", "forward_backward": "forward + backward"}
PATHS = {"fused": ("#0072b2", "o"), "composed": ("#d55e00", "s")}
NAME = re.compile(r"(?P<op>\w+)/B(?P<B>\d+)/n(?P<n>\d+)(/C(?P<C>\d+))?/(?P<mode>\w+)/(?P<run>\w+)/(?P<path>\w+)")

Key = collections.namedtuple("Key", "op B n C mode run path")


def last_run(source):
    """{Key: record} of the lines with the date of the last one."""
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    found = {}
    for record in lines:
        name = NAME.match(record["name"])
        if name and record["date"] == lines[-1]["date"]:
            sizes = {axis: int(name[axis] or 0) for axis in "BnC"}
            found[Key(name["op"], **sizes, mode=name["mode"], run=name["run"], path=name["path"])] = record
    return found


def missing(records):
    """The results that the pictures need and a filtered run does not have."""
    there = {f"{key.op}/B{key.B}/{key.mode}" for key in records}
    needed = {f"{op}/B{tokens}/{mode}" for op in STYLES
              for mode, tokens in (("latency", 1), ("throughput", 4096 if op == "sinkhorn_knopp" else 64))}
    return sorted(needed - there)


def curve(records, axis, value, **wanted):
    """The points (axis, value(key, record)) of the records whose keys match, in order."""
    matches = ((key, record) for key, record in records.items()
               if all(getattr(key, name) == what for name, what in wanted.items()))
    return sorted((getattr(key, axis), value(key, record)) for key, record in matches)


def plot(axes, points, color, marker, **how):
    if points:
        axes.plot(*zip(*points), marker + how.pop("line", "-"), color=color, linewidth=1.4, markersize=5, markerfacecolor="white", **how)


def label_powers(axis, values):
    """Log scale base 2 with a tick and a plain number at each value."""
    axis.axes.set_xscale("log", base=2) if axis.axis_name == "x" else axis.axes.set_yscale("log", base=2)
    axis.set_ticks(sorted(values), labels=[f"{value:g}" for value in sorted(values)])


def draw_speedups(records, picture):
    """Composed time over fused time by C, at n = 4."""
    def speedup(key, record):
        composed = records.get(key._replace(path="composed"))
        return composed["seconds"] / record["seconds"] if composed else float("nan")

    modes = [("latency", 1, "B = 1 token, in cache"), ("throughput", 64, "B = 64 tokens, out of cache")]
    figure, grid = plt.subplots(2, 2, figsize=(11, 7.4), sharex=True, sharey=True, layout="constrained")
    for row, (mode, tokens, title) in zip(grid, modes):
        for axes, (run, run_title) in zip(row, PASSES.items()):
            for op, (label, color, marker) in STYLES.items():
                points = curve(records, "C", speedup, op=op, B=tokens, n=4, mode=mode, run=run, path="fused")
                if op != "sinkhorn_knopp":
                    plot(axes, points, color, marker, label=label)
            axes.axhline(1, color="#999999", linewidth=0.8)
            axes.set_title(f"{run_title}: {title}", fontsize="medium")
    label_powers(grid[0][0].xaxis, {key.C for key in records if key.n == 4 and key.C})
    grid[0][-1].legend(loc="upper left", bbox_to_anchor=(1.02, 1))
    top = grid[0][0].get_ylim()[1]
    label_powers(grid[0][0].yaxis, [2**k for k in range(10) if 2**k < top])
    finish(figure, grid, "channels C of a stream", "composed time / fused time", "Speed-up of the fused paths, n = 4 streams, f32", picture)


def draw_times(records, picture):
    """Time of a call by n, fused and composed, at C = 512 and 64 tokens; Sinkhorn at 4096."""
    def microseconds(_, record):
        return 1e6 * record["seconds"]

    figure, grid = plt.subplots(2, 3, figsize=(11, 7.4), sharex=True, sharey=True, layout="constrained")
    for axes, (op, (label, _, _)) in zip(grid.flat, STYLES.items()):
        where = {"B": 4096, "C": 0} if op == "sinkhorn_knopp" else {"B": 64, "C": 512}
        for path, (color, marker) in PATHS.items():
            for run, line in (("forward", ":"), ("forward_backward", "-")):
                wanted = {"op": op, "mode": "throughput", "run": run, "path": path, **where}
                points = curve(records, "n", microseconds, **wanted)
                plot(axes, points, color, marker, line=line, label=f"{path}, {PASSES[run]}")
                band = curve(records, "n", lambda _, record: (1e6 * record["p10"], 1e6 * record["p90"]), **wanted)
                axes.fill_between([n for n, _ in band], [low for _, (low, _) in band], [high for _, (_, high) in band], color=color, alpha=0.15, linewidth=0)
        axes.set_yscale("log")
        axes.set_title(f"{label}, {where['B']} {'matrices' if op == 'sinkhorn_knopp' else 'tokens'}", fontsize="medium")
    label_powers(grid[0][0].xaxis, {key.n for key in records})
    grid[0][0].legend(loc="upper left", fontsize="small")
    finish(figure, grid, "streams n", "time of a call [µs]", "Time, C = 512, f32, many calls out of cache (bands: 10th to 90th percentile)", picture)


def draw_shares(records, picture):
    """Unavoidable bytes per second over copy bandwidth by C, at n = 4."""
    figure, grid = plt.subplots(1, 2, figsize=(11, 4.6), sharex=True, sharey=True, layout="constrained", squeeze=False)
    for axes, (run, title) in zip(grid.flat, PASSES.items()):
        for op, (label, color, marker) in STYLES.items():
            if op == "sinkhorn_knopp":
                continue
            for path, line in (("fused", "-"), ("composed", ":")):
                points = curve(records, "C", lambda _, record: 100 * record["share_of_copy"], op=op, B=64, n=4, mode="throughput", run=run, path=path)
                plot(axes, points, color, marker, line=line, label=f"{label}, {path}")
        axes.axhline(100, color="#999999", linewidth=0.8)
        axes.annotate("a copy", (0, 100), xycoords=("axes fraction", "data"), xytext=(4, 3), textcoords="offset points", fontsize="small", color="#666666")
        axes.set_title(title, fontsize="medium")
        axes.set_ylim(0, max(110, axes.get_ylim()[1]))
    label_powers(grid[0][0].xaxis, {key.C for key in records if key.n == 4 and key.C})
    grid[0][-1].legend(loc="upper left", bbox_to_anchor=(1.02, 1))
    finish(figure, grid, "channels C of a stream", "unavoidable bytes / copy bandwidth [%]", "Share of copy bandwidth, n = 4 streams, 64 tokens a call, f32, out of cache", picture)


def finish(figure, grid, xlabel, ylabel, title, picture):
    for axes in grid.flat:
        axes.grid(alpha=0.3)
    for axes in grid[-1]:
        axes.set_xlabel(xlabel)
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel)
    figure.suptitle(title)
    figure.savefig(picture, dpi=90)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=pathlib.Path, help="bench_mhc.jsonl, as summarize.py writes it")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder of the pictures")
    arguments = parser.parse_args()
    records = last_run(arguments.results)
    if absent := missing(records):
        print(f"No pictures: the last run has no {absent[0]}")
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    pictures = {"mhc_speedup.png": draw_speedups, "mhc_time.png": draw_times, "mhc_share_of_copy.png": draw_shares}
    for name, draw in pictures.items():
        draw(records, arguments.out / name)
        print(arguments.out / name)


if __name__ == "__main__":
    main()
