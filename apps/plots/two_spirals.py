#!/usr/bin/python3
"""Draws the decision regions of a classifier: two_spirals.py map.npz boundary.png"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy


def main(source, picture):
    data = numpy.load(source)
    points, arms = data["points"], data["arms"][:, 0]
    figure, axes = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
    image = axes.imshow(data["map"], extent=(-1, 1, -1, 1), origin="lower", cmap="RdBu", vmin=0, vmax=1, alpha=0.45)
    axes.contour(data["map"], levels=[0.5], extent=(-1, 1, -1, 1), colors="black", linewidths=1)
    for arm, color in ((0, "#a50026"), (1, "#053061")):
        axes.plot(*points[arms == arm].T, "o", color=color, markersize=2)
    axes.set(xlim=(-1, 1), ylim=(-1, 1), xlabel="x", ylabel="y", title="The boundary, and points not trained on")
    figure.colorbar(image, label="probability of the blue arm", shrink=0.9)
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
