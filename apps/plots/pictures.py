#!/usr/bin/python3
"""Draws pictures and what four models say of them: pictures.py pictures.npz pictures.png"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy

SHAPES = ["disc", "ring", "square", "frame", "cross", "stripes"]
MODELS = [("resnet_residual", "ResNet"), ("resnet_mhc", "ResNet, mHC"), ("vit_residual", "ViT"), ("vit_mhc", "ViT, mHC")]


def main(source, picture):
    data = numpy.load(source)
    classes = data["classes"]
    figure, axes = plt.subplots(3, 6, figsize=(9.6, 6.2), layout="constrained")
    wrong = sum((data[model] != classes).astype(int) for model, _ in MODELS)
    for column, shape in enumerate(SHAPES):
        mine = numpy.flatnonzero(classes == column)
        hard = mine[numpy.argsort(-wrong[mine], kind="stable")]
        for row, index in enumerate((mine[0], mine[1], hard[0])):
            panel = axes[row, column]
            panel.imshow(data["pixels"][index, :, :, 0], cmap="gray", vmin=-1.5, vmax=2.5)
            errors = [f"{name}: {SHAPES[data[model][index]]}" for model, name in MODELS if data[model][index] != column]
            panel.set_title(shape if row < 2 else f"{shape}, hard", fontsize=9)
            panel.set_xlabel("\n".join(errors) or "all right", fontsize=7, color="#a50026" if errors else "#1a7a3a")
            panel.set(xticks=[], yticks=[])
    scores = ", ".join(f"{name} {100 * (data[model] == classes).mean():.1f} %" for model, name in MODELS)
    figure.suptitle(f"Right of 1000: {scores}", fontsize=10)
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
