#!/usr/bin/python3
"""Draws the level lines of two critics and their slopes: gradient_penalty.py critics.npz gradient_penalty.png"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy

COLORS = {"free": "#d55e00", "penalized": "#0072b2"}
TITLES = {"free": "without the penalty", "penalized": "with the penalty"}


def draw_critic(axes, data, name):
    """The mean over the map is subtracted: only differences of a critic's values count."""
    values = data[name] - data[name].mean()
    lines = axes.contour(values, levels=12, extent=(-2, 3, -2, 3), colors=COLORS[name], linewidths=1)
    axes.clabel(lines, fontsize=7, fmt="%g")
    for points, color in (("a", "#999999"), ("b", "#000000")):
        axes.plot(*data[points][:400].T, "o", color=color, markersize=1.5)
    axes.set(xlim=(-2, 3), ylim=(-2, 3), aspect="equal", title=f"The critic {TITLES[name]}")


def main(source, picture):
    data = numpy.load(source)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.9), layout="constrained")
    draw_critic(left, data, "free")
    draw_critic(middle, data, "penalized")
    for name, color in COLORS.items():
        right.hist(data[f"{name}_slopes"], bins=numpy.geomspace(0.1, 1e4, 80), color=color, alpha=0.7, label=TITLES[name])
    right.set(xscale="log", xlabel="length of the gradient", ylabel="points between the clouds", title="Slopes")
    right.legend()
    figure.savefig(picture, dpi=80)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
