#!/usr/bin/python3 -B
"""Draws the pictures of the stability experiment: stability.py RESULTS_FOLDER FIGURES_FOLDER"""
import math
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

from stability_data import TASKS, Results, band

# Okabe and Ito's colors, which readers with any color vision can tell apart; connections over the history are dashed.
STYLES = {"residual": ("#000000", "-", "o"), "hc": ("#d55e00", "-", "s"), "mhc": ("#0072b2", "-", "D"),
          "skip-residual": ("#999999", "--", "o"), "skip-hc": ("#e69f00", "--", "s"), "skip-mhc": ("#56b4e9", "--", "D"),
          "deepseek-v4": ("#009e73", "-", "^"), "hunyuan-v4": ("#cc79a7", "-", "v"), "gated": ("#882255", "-", "P"),
          "single-pass": ("#44aa99", "-", "X"), "attention-residual": ("#332288", "--", "^"),
          "layer-scale": ("#666666", "-", "*"), "rezero": ("#aaaa00", "-", "<"), "laurel": ("#117733", "-", ">"),
          "manifold": ("#aa4499", "-", "h"), "mhc-layer": ("#6699cc", "-", "d"), "frac": ("#997700", "-", "p")}
# Curves of the first of each kind often lie below others: they are wide, so that one sees them on both sides.
WIDTHS = {"residual": 3.4, "skip-residual": 2.8}


def title(results, task):
    table = results.config[task]
    depth = table.get("sublayers") or 2 * table["blocks"]
    return f"{task.replace('_', ' ')}\n{depth} sublayers, learning rate {table['shown_learning_rate']:g}, {len(table['seeds'])} seeds"


def panels(results, rows=1):
    """The figure and axes[row][column], with a column of panels per task."""
    columns = len(results.tasks())
    figure, axes = plt.subplots(rows, columns, figsize=(1.5 + 4.6 * columns, 0.9 + 3.3 * rows), layout="constrained", squeeze=False)
    for axis, task in zip(axes[0], results.tasks()):
        axis.set_title(title(results, task), fontsize=10)
    return figure, axes


def finish(figure, axes, path, ticks={}):
    """Adds a legend of all modes and a grid, and writes the file; `ticks`: x axes with ticks of their own."""
    known = {}
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.set_axisbelow(True)
        for scale in (axis.xaxis, axis.yaxis):
            if scale.get_scale() == "log":
                low, high = scale.get_view_interval()
                scale.set_minor_formatter(NullFormatter())
                if high < 1e4 * low:  # else 1, 10, 100, ... as by default
                    scale.set_major_locator(LogLocator(subs=(1, 2, 5)))
                    scale.set_major_formatter("{x:g}")
        if axis in ticks:
            axis.set_xticks(ticks[axis], [f"{tick:g}" for tick in ticks[axis]])
            axis.minorticks_off()
        for handle, label in zip(*axis.get_legend_handles_labels()):
            known.setdefault(label, handle)
    axes[0][-1].legend(known.values(), known.keys(), title="connection", loc="upper left", bbox_to_anchor=(1.02, 1))
    figure.savefig(path, dpi=90)
    plt.close(figure)


def draw_band(axis, mode, xs, rows):
    """The median over seeds as a line, the range from minimum to maximum as a band."""
    color, line, _ = STYLES[mode]
    median, low, high = band(rows)
    xs = list(xs)[: len(median)]
    axis.plot(xs, median, line, color=color, linewidth=WIDTHS.get(mode, 1.6), label=mode)
    axis.fill_between(xs, low, high, color=color, alpha=0.15, linewidth=0)


def last_probe(run):
    return [step["sublayers"] for step in run.steps() if "sublayers" in step][-1]


def smoothed(values, decay=0.8):
    average, weight, result = 0.0, 0.0, []
    for value in values:
        average, weight = decay * average + (1 - decay) * (math.nan if value is None else value), decay * weight + (1 - decay)
        result.append(average / weight)
    return result


def draw_losses(results, path):
    figure, axes = panels(results)
    for axis, task in zip(axes[0], results.tasks()):
        for mode in results.modes(task):
            rows = [smoothed([step["loss"] for step in run.steps()]) for run in results.compared(task, mode)]
            draw_band(axis, mode, range(1, 1 + max(map(len, rows), default=0)), rows)
        axis.set(xlabel="step", ylabel=f"training loss, moving average:\n{TASKS[task]}", yscale="log")
    finish(figure, axes, path)


def draw_by_depth(results, path, keys):
    """A row of panels per quantity, at the last probe of each run."""
    figure, axes = panels(results, len(keys))
    for column, task in enumerate(results.tasks()):
        for mode in results.modes(task):
            probes = [last_probe(run) for run in results.compared(task, mode)]
            for row, key in enumerate(keys):
                lists = [probe[key] for probe in probes]
                draw_band(axes[row][column], mode, range(1, 1 + max(map(len, lists), default=0)), lists)
        for row, name in enumerate(keys.values()):
            axes[row][column].set(xlabel="sublayer", ylabel=name, yscale="log")
    finish(figure, axes, path)


def draw_divergence(results, path):
    """Rates of several modes are often the same: markers differ in size, so that all are visible."""
    figure, axes = panels(results)
    ticks = {}
    for axis, task in zip(axes[0], results.tasks()):
        table = results.config[task]
        rates = sorted(table["learning_rates"])
        for order, mode in enumerate(results.modes(task)):
            color, line, marker = STYLES[mode]
            groups = [results.compared(task, mode, rate) for rate in rates]
            share = [sum(run.diverged for run in group) / len(group) if group else math.nan for group in groups]
            axis.plot(rates, share, line, marker=marker, color=color, linewidth=1.5, markersize=13 - 1.6 * order, markerfacecolor="none",
                      label=mode)
        axis.set_title(f"{task.replace('_', ' ')}\n{len(table['seeds'])} seeds at each learning rate", fontsize=10)
        axis.set(xlabel="learning rate", ylabel="share of runs that diverged", xscale="log", ylim=(-0.05, 1.05))
        ticks[axis] = rates
    finish(figure, axes, path, ticks)


def draw_sharpness(results, path):
    """Each run's eigenvalues by step; a cross ends those of a run that diverged. The limit belongs to the lower row."""
    columns = [(task, rate) for task in results.tasks() if "sharpness_every" in results.config[task] for rate in results.config[task]["learning_rates"]]
    figure, axes = plt.subplots(2, len(columns), figsize=(1.5 + 3.7 * len(columns), 6.2), layout="constrained", squeeze=False)
    for (upper, lower), (task, rate) in zip(axes.T, columns):
        for run in [run for mode in results.modes(task) for run in results.compared(task, mode, rate)]:
            steps = [step for step in run.steps() if "sharpness" in step]
            color, xs = STYLES[run.mode][0], [step["step"] for step in steps]
            for axis, key in ((upper, "largest"), (lower, "preconditioned")):
                ys = [math.nan if step["sharpness"][key] is None else step["sharpness"][key] for step in steps]
                axis.plot(xs, ys, ".-", color=color, linewidth=1, label=run.mode)
                if run.diverged and steps:
                    axis.plot(xs[-1], ys[-1], "x", color=color, markersize=10, markeredgewidth=2.5)
            lower.plot(xs, [step["sharpness"]["limit"] for step in steps], ":", color="#555555", label="limit of AdamW")
        upper.set_title(f"{task.replace('_', ' ')}\nlearning rate {rate:g}", fontsize=10)
        upper.set(ylabel="largest eigenvalue\nof the Hessian", yscale="log")
        lower.set(xlabel="step", ylabel="largest eigenvalue,\npreconditioned as by AdamW", yscale="log")
    finish(figure, axes, path)


# The lists of a configuration's [ablations]: the setting of a connection, and the modes that it concerns.
ABLATIONS = {"streams": ("streams", ["hc", "mhc"]), "sinkhorn_iterations": ("sinkhorn_iterations", ["mhc"]),
             "mixings": ("mixing", ["mhc"]), "max_history": ("max_history", ["skip-hc", "skip-mhc"]), "constraints": ("constraint", ["skip-mhc"]),
             "inits": ("init", ["skip-hc", "skip-mhc"])}


def ablation_bars(results):
    """(setting, mode, value, runs) for each bar."""
    table = results.config["ablations"]
    for key, (setting, modes) in ABLATIONS.items():
        for mode in modes if key in table else []:
            for value in table[key]:
                yield setting, mode, value, results.select(table["task"], mode, table["learning_rate"], table["seeds"], **{setting: value})


def draw_ablations(results, path):
    bars = list(ablation_bars(results))
    table = results.config["ablations"]
    columns = {"final_loss": f"final loss: {TASKS[table['task']]}", "forward_gain": "composite forward gain", "backward_gain": "composite backward gain"}
    figure, axes = plt.subplots(1, 3, figsize=(13, 0.9 + 0.28 * len(bars)), layout="constrained", sharey=True, squeeze=False)
    for axis, (key, name) in zip(axes[0], columns.items()):
        for position, (_, mode, _, runs) in enumerate(bars):
            (median,), (low,), (high,) = band([[getattr(run, key)] for run in runs] or [[math.nan]])
            start = 0 if key == "final_loss" else 1  # a gain of 1 changes nothing: bars on the logarithmic axis leave from there
            axis.barh(position, median - start, left=start, color=STYLES[mode][0], label=mode)
            axis.plot([low, high], [position, position], color="#555555", linewidth=2)
            axis.annotate(f"{median:.3g}", (high, position), xytext=(4, 0), textcoords="offset points", va="center", fontsize=7)
        axis.set(xlabel=name)
        axis.margins(x=0.28)
        if key != "final_loss":
            axis.set_xscale("log")
            axis.axvline(1, color="#555555", linewidth=0.8)
    axes[0][0].set_yticks(range(len(bars)), [f"{mode}: {setting.replace('_', ' ')} {value}" for setting, mode, value, _ in bars])
    axes[0][0].invert_yaxis()
    figure.suptitle(f"Ablations: {table['task'].replace('_', ' ')}, learning rate {table['learning_rate']:g}; "
                    f"bars: median, lines: least to most of {len(table['seeds'])} seeds", fontsize=10)
    finish(figure, axes, path)


def main(source, target):
    results, target = Results(source), pathlib.Path(target)
    draw_by_depth(results, target / "gain.png", {"composed_forward_gain": "forward gain,\nfirst to this sublayer",
                                                 "composed_backward_gain": "backward gain,\nthis to last sublayer"})
    draw_by_depth(results, target / "gradient_norm.png", {"gradient_norm": "gradient norm\nof the sublayer's weights"})
    draw_by_depth(results, target / "activation_norm.png", {"activation_norm": "root mean square\nof the stream behind the sublayer"})
    draw_losses(results, target / "loss.png")
    draw_divergence(results, target / "divergence.png")
    if any("sharpness_every" in results.config[task] for task in results.tasks()):
        draw_sharpness(results, target / "sharpness.png")
    if "ablations" in results.config:
        draw_ablations(results, target / "ablations.png")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
