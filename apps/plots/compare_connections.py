#!/usr/bin/python3 -B
"""Draws the loss under each connection: compare_connections.py metrics.jsonl loss.png"""
import itertools
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from plot_loss import smoothed

# Okabe and Ito's colors, which readers with any color vision can tell apart, and a marker each; of 42 pairs none comes twice.
COLORS, MARKERS = ("#000000", "#e69f00", "#0072b2", "#cc79a7", "#009e73", "#d55e00"), ("o", "s", "D", "v", "^", "X", "P")


def styled(runs):
    return zip(runs.items(), itertools.cycle(COLORS), itertools.cycle(MARKERS))


def read_runs(source):
    """The lines of each connection, in the order of their first appearance."""
    runs = {}
    with open(source) as file:
        for line in map(json.loads, file):
            runs.setdefault(line["connection"], []).append(line)
    return runs


def draw_losses(axes, runs, held_out):
    for (name, run), color, marker in styled(runs):
        axes.plot([line["step"] for line in run], smoothed([line["train_loss"] for line in run]), color=color, linewidth=0.7, alpha=0.5)
        axes.plot(*zip(*held_out[name].items()), marker + "-", color=color, linewidth=1.4, markersize=5, markerfacecolor="white")
    axes.set_ylim(top=max(max(losses.values()) for losses in held_out.values()) + 0.3)
    axes.set(xlabel="step", ylabel="cross-entropy [nats per character]", title="Loss (thin: training, moving average)")


def draw_differences(axes, held_out):
    """Draws differences on a scale that is linear up to 0.01 and logarithmic beyond: they range from tiny to large."""
    first = next(iter(held_out))
    baseline = held_out[first]
    for (name, losses), color, marker in styled(held_out):
        difference = [losses[step] - baseline[step] for step in baseline]
        axes.plot(list(baseline), difference, marker + "-", color=color, linewidth=1.4, markersize=5, markerfacecolor="white",
                  label=f"{name}: {list(losses.values())[-1]:.3f}")
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set(xlabel="step", ylabel=f"held-out loss minus that of {first}", title=f"Against {first} (lower is better)")
    axes.legend(title="held out, at the end", loc="center left", bbox_to_anchor=(1.02, 0.5))


def main(source, picture):
    runs = read_runs(source)
    held_out = {name: {line["step"]: line["val_loss"] for line in run if "val_loss" in line} for name, run in runs.items()}
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    draw_losses(left, runs, held_out)
    draw_differences(right, held_out)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
