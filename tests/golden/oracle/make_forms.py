"""Writes golden cases of residual connections with one stream, all float64. Files are those of make_golden.py.

    python3 make_forms.py OUT_DIR [--seed N] [--big]

The layer inside is tanh(x w).
  layer_scale_*  x + scale layer(x), a factor for each channel (arXiv:2103.17239)
  rezero_*       the same with one factor (arXiv:2003.04887)
  laurel_*       LAuReL-RW+LR (arXiv:2411.07501) with A [C, r], B [r, C] as in the paper: a layer(x) + b (x + x A B), (a, b) = 2 softmax(weights)
"""
import argparse

import torch

import make_golden as golden


def layer(i):
    return torch.tanh(i["x"] @ i["w"])


def inputs(w, c):
    return {"x": w.randn(2, 3, c), "w": w.randn(c, c, scale=.5)}


def layer_scale(w, big):
    for name, c, factors in (("layer_scale_c6", 6, 6), ("layer_scale_c17", 17 + big, 17 + big), ("rezero_c6", 6, 1), ("rezero_c9", 9 + big, 1)):
        w.case(name, {"factors": factors}, inputs(w, c), {"scale": w.randn(factors)}, lambda i, p: i["x"] + p["scale"] * layer(i))


def laurel(w, big):
    def forward(i, p):
        e = p["weights"].exp()
        a, b = 2 * e / e.sum()
        return a * layer(i) + b * (i["x"] + i["x"] @ p["A"] @ p["B"])

    for c, r in ((8, 3), (6, 1), (5, 5), (13 + big, 4)):
        w.case(f"laurel_c{c}_r{r}", {"rank": r}, inputs(w, c), {"weights": w.randn(2), "A": w.randn(c, r, scale=.5), "B": w.randn(r, c, scale=.5)}, forward)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder")
    args.add_argument("--seed", type=int, default=20261127)
    args.add_argument("--big", action="store_true", help="other sizes")
    args = args.parse_args()
    w = golden.Writer(args.folder, args.seed)
    for group in (layer_scale, laurel):
        group(w, args.big)
    print(f"{w.count} cases in {w.folder}")


if __name__ == "__main__":
    main()
