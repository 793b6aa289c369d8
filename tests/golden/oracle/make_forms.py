"""Writes golden cases of residual connections with one stream and of value residuals, all float64. Files are those of make_golden.py.

    python3 make_forms.py OUT_DIR [--seed N] [--big]

The layer inside connections is tanh(x w).
  layer_scale_*     x + scale layer(x), a factor for each channel (arXiv:2103.17239)
  rezero_*          the same with one factor (arXiv:2003.04887)
  laurel_*          LAuReL-RW+LR (arXiv:2411.07501) with A [C, r], B [r, C] as in the paper: a layer(x) + b (x + x A B), (a, b) = 2 softmax(weights)
  value_residual_*  two attentions in turn, the second with values w_0 v_first + w_1 v (arXiv:2410.17897)
"""
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


def attention(q, k, v, heads):
    """Causal, q, k, v [B, T, C]; k and v may have fewer heads."""
    size = q.shape[-1] // heads
    q, k, v = (y.unflatten(-1, (-1, size)).transpose(1, 2) for y in (q, k, v))
    k, v = (y.repeat_interleave(heads // y.shape[1], 1) for y in (k, v))
    scores = (q @ k.transpose(-1, -2)) / size ** .5
    scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2)


def value_residual(w, big):
    for c, heads, kv_heads in ((8, 2, 2), (12 + 4 * big, 4, 2)):
        def forward(i, p, heads=heads):
            of = lambda x, name: x @ p[f"{name}.weight"].T
            first = of(i["x"], "a.v")
            h = of(attention(of(i["x"], "a.q"), of(i["x"], "a.k"), first, heads), "a.o")
            v = p["b.value_weights"][0] * first + p["b.value_weights"][1] * of(h, "b.v")
            return of(attention(of(h, "b.q"), of(h, "b.k"), v, heads), "b.o")

        kv = c // heads * kv_heads
        shapes = {"q": (c, c), "k": (kv, c), "v": (kv, c), "o": (c, c)}
        params = {f"{m}.{name}.weight": w.randn(*shape, scale=.5) for m in "ab" for name, shape in shapes.items()}
        w.case(f"value_residual_c{c}_h{heads}_kv{kv_heads}", {"heads": heads, "kv_heads": kv_heads}, {"x": w.randn(2, 5, c)},
               params | {"b.value_weights": w.randn(2)}, forward)


if __name__ == "__main__":
    golden.write_groups((layer_scale, laurel, value_residual), 20261127)
