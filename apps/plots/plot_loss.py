#!/usr/bin/python3
"""Draws the loss curves of a run: plot_loss.py metrics.jsonl loss.png"""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def smoothed(values, decay=0.95):
    """Exponential moving average, corrected for its start."""
    average, weight, result = 0.0, 0.0, []
    for value in values:
        average, weight = decay * average + (1 - decay) * value, decay * weight + (1 - decay)
        result.append(average / weight)
    return result


def main(source, picture):
    with open(source) as file:
        lines = [json.loads(line) for line in file]
    trained = [line for line in lines if "train_loss" in line]  # the first line of train_lm --init has none
    steps, losses = [line["step"] for line in trained], [line["train_loss"] for line in trained]
    held_out = [(line["step"], line["val_loss"]) for line in lines if "val_loss" in line]

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.plot(steps, losses, color="#9ecae1", linewidth=0.6, label="training, each step")
    axes.plot(steps, smoothed(losses), color="#0072b2", linewidth=1.6, label="training, moving average")
    if held_out:
        axes.plot(*zip(*held_out), "o-", color="#d55e00", linewidth=1.6, markersize=4, label="held out")
        axes.annotate(f"{held_out[-1][1]:.3f}", held_out[-1], xytext=(0, 8), textcoords="offset points", ha="right", color="#d55e00")
    axes.set(xlabel="step", ylabel="cross-entropy [nats per character]", title="Language model: loss")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
