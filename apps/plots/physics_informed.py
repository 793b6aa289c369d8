#!/usr/bin/python3
"""Draws a solution and its errors: physics_informed.py solution.npz physics_informed.png"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy


def main(source, picture):
    data = {name: values[:, 0] for name, values in numpy.load(source).items()}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(data["x"], data["u"] - data["error"], color="#999999", linewidth=5, label="the solution")
    left.plot(data["x"], data["u"], color="#0072b2", label="the network")
    left.set(xlabel="x", ylabel="u", title="Trained on u'' = f alone")
    left.legend()
    right.plot(data["x"], abs(data["residual"]), color="#e69f00", linewidth=1, label="of u''")
    right.plot(data["x"], abs(data["error"]), color="#0072b2", label="of u")
    right.set(xlabel="x", yscale="log", ylim=(1e-9, 1), title="Errors, absolute")
    right.legend()
    figure.savefig(picture, dpi=80)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
