"""Writes cases of every module at shapes that make_golden.py leaves out: leading axes 0 to 3 deep, sizes of 1,
odd sizes, up to 64 streams.

    python3 make_shapes.py OUT_DIR [--seed N]
"""
import argparse
import math

import torch

import reference as ref
from make_golden import Writer, transformer

LEADS = ((), (1,), (5,), (2, 3), (2, 1, 3))
CHANNELS = (1, 3, 17, 33)
STREAMS = (1, 2, 3, 5, 16, 64)


def tag(*sizes):
    return "x".join(map(str, sizes)) or "0"


def norms_and_activations(w):
    for lead in LEADS:
        for c in CHANNELS:
            shape, end = (*lead, c), tag(*lead, c)
            weights = {"weight": w.randn(c), "bias": w.randn(c)}
            w.case(f"rms_norm_{end}", {"eps": 1e-5}, {"x": w.randn(*shape)}, {"weight": weights["weight"]},
                   lambda i, p: ref.rms_norm(i["x"], p["weight"], 1e-5))
            w.case(f"layer_norm_{end}", {"eps": 1e-5}, {"x": w.randn(*shape)}, weights,
                   lambda i, p: torch.nn.functional.layer_norm(i["x"], (c,), p["weight"], p["bias"], 1e-5))
            for axis in range(-1, len(shape) - 1):
                x = w.randn(*shape, scale=3)
                w.case(f"softmax_{end}_a{axis}", {"axis": axis}, {"x": x}, {}, lambda i, p: i["x"].softmax(axis))
                w.case(f"log_softmax_{end}_a{axis}", {"axis": axis}, {"x": x}, {}, lambda i, p: i["x"].log_softmax(axis))
            x = w.randn(*shape, scale=4)
            w.case(f"gelu_tanh_{end}", {}, {"x": x}, {}, lambda i, p: ref.gelu_tanh(i["x"]))
            w.case(f"gelu_erf_{end}", {}, {"x": x}, {}, lambda i, p: torch.nn.functional.gelu(i["x"]))
            w.case(f"silu_{end}", {}, {"x": x}, {}, lambda i, p: torch.nn.functional.silu(i["x"]))


def products_and_losses(w):
    for lead in LEADS:
        for c in CHANNELS:
            end = tag(*lead, c)
            out = 2 * c - 1
            w.case(f"linear_{end}", {}, {"x": w.randn(*lead, c)}, {"weight": w.randn(out, c), "bias": w.randn(out)},
                   lambda i, p: i["x"] @ p["weight"].T + p["bias"])
            w.case(f"matmul_broadcast_{end}", {}, {"a": w.randn(*lead, 7, c), "b": w.randn(3, *[1] * len(lead), c, 5)}, {},
                   lambda i, p: i["a"] @ i["b"])
            w.case(f"cross_entropy_{end}", {}, {"logits": w.randn(*lead, c, scale=8), "targets": torch.randint(c, lead, generator=w.g)},
                   {}, lambda i, p: ref.cross_entropy(i["logits"], i["targets"]))
            w.case(f"embedding_{end}", {}, {"ids": torch.randint(6, lead, generator=w.g)}, {"weight": w.randn(6, c)},
                   lambda i, p: p["weight"][i["ids"]])
            axes = list(range(0, len(lead) + 1, 2))
            w.case(f"reductions_{end}", {"axes": axes}, {"x": w.randn(*lead, c)}, {},
                   lambda i, p: {"y": i["x"].mean(axes), "sum": i["x"].sum(axes), "max": i["x"].amax(axes)})
            w.case(f"broadcast_arithmetic_{end}", {}, {"a": w.randn(*lead, c), "b": w.randn(4, *[1] * len(lead), 1), "c": w.randn(c, scale=.1, shift=2)}, {},
                   lambda i, p: (i["a"] * i["b"] - i["a"]) / i["c"])
    for b, t, heads, d in ((1, 2, 1, 1), (3, 7, 3, 5), (1, 33, 2, 17), (2, 65, 1, 33), (1, 130, 4, 8)):
        c = heads * d
        w.case(f"causal_attention_b{b}_t{t}_h{heads}_d{d}", {"heads": heads}, {"x": w.randn(b, t, c)},
               {f"a.{k}": w.randn(c, c, scale=1 / math.sqrt(c)) for k in ("wq", "wk", "wv", "wo")},
               lambda i, p: ref.causal_attention(i["x"], p, "a", heads))


def sinkhorn(w):
    for n in STREAMS:
        for lead in LEADS:
            iterations, scale = 1 + (7 * n + len(lead)) % 25, (1, 5, 40)[len(lead) % 3]
            for exact in ("columns", "rows"):
                w.case(f"sinkhorn_n{n}_t{iterations}_s{scale}_b{tag(*lead)}_{exact}", {"iterations": iterations, "exact": exact},
                       {"logits": w.randn(*lead, n, n, scale=scale)}, {},
                       lambda i, p: ref.sinkhorn_knopp(i["logits"], iterations, exact))


def manifold_hyper_connection(w):
    for n in STREAMS:
        for lead in LEADS:
            dims, iterations = n * (1, 3, 17)[len(lead) % 3], 1 + (5 * n) % 20
            p = {"h_res_raw": w.randn(n, n, scale=2), "h_pre_raw": w.randn(n), "h_pre_bias": w.randn(n), "h_post_raw": w.randn(n), "h_post_bias": w.randn(n)}
            config, end = {"dims": dims, "expansion": n, "sinkhorn_iterations": iterations}, f"d{dims}_n{n}_b{tag(*lead)}"
            x, f, m = w.randn(*lead, dims), w.randn(*lead, dims), w.randn(dims, dims, scale=1 / math.sqrt(dims))
            w.case(f"mhconn_pre_scale_{end}", config, {"x": x}, p, lambda i, q: ref.pre_scale(q, i["x"], n, iterations))
            w.case(f"mhconn_post_combine_{end}", config, {"x": x, "layer_output": f}, p,
                   lambda i, q: ref.post_combine(q, i["x"], i["layer_output"], n, iterations))
            if dims <= 200:
                w.case(f"mhconn_two_stage_{end}", {**config, "layer": "x_pre @ w"}, {"x": x, "w": m}, p,
                       lambda i, q: ref.post_combine(q, i["x"], ref.pre_scale(q, i["x"], n, iterations) @ i["w"], n, iterations))
                w.case(f"mhconn_legacy_{end}", {**config, "layer": "x @ w"}, {"x": x, "w": m}, p,
                       lambda i, q: ref.post_combine(q, i["x"], i["x"] @ i["w"], n, iterations))


def stream_modules(w):
    for n in STREAMS:
        for k, lead in enumerate(LEADS):
            c = CHANNELS[(n + k) % 4]
            end, layer = f"b{tag(*lead)}_n{n}_c{c}", {"w": w.randn(c, c, scale=1 / math.sqrt(c))}
            w.case(f"mhc_layer_{end}", {"n": n, "C": c, "sinkhorn_iterations": 20, "eps": 1e-5}, {"x": w.randn(*lead, n, c)},
                   {"h_pre_raw": w.randn(n), "h_post_raw": w.randn(n), "h_res_raw": w.randn(n, n), "rms_weight": w.randn(c)},
                   lambda i, p: ref.mhc_layer(p, i["x"], 20, 1e-5))
            hc = {"theta_pre": w.randn(c), "theta_post": w.randn(c), "theta_res": w.randn(n, c), "alpha": w.randn(3, scale=1 / n), "b_pre": w.randn(n, scale=1 / n),
                  "b_post": w.randn(n), "b_res": w.randn(n, n, scale=1 / n)}
            w.case(f"hyper_connection_{end}", {"n": n, "dim": c, "eps": 1e-6, "layer": "tanh(h @ w)"}, {"x": w.randn(*lead, n, c)}, {**hc, **layer},
                   lambda i, p: ref.hyper_connection(p, i["x"], lambda h: torch.tanh(h @ p["w"])))
            if n * c > 600:  # phi alone would be n c n (n + 2) numbers
                continue
            mhc = {"phi": w.randn(n * c, n * (n + 2), scale=1 / math.sqrt(n * c)), "alpha": w.randn(3), "bias": w.randn(n * (n + 2))}
            for exact, iterations in (("columns", 3), ("rows", 20)):
                def run(i, p):
                    h_pre, h_post, h_res = ref.manifold_constrained_hc_maps(p, i["x"], iterations, exact)
                    y = ref.manifold_constrained_hc(p, i["x"], lambda h: torch.tanh(h @ p["w"]), iterations, exact)
                    return {"y": y, "h_pre": h_pre, "h_post": h_post, "h_res": h_res}

                w.case(f"manifold_constrained_hc_{end}_{exact}", {"n": n, "dim": c, "eps": 1e-6, "sinkhorn_iterations": iterations, "exact": exact,
                                                                  "layer": "tanh(h @ w)"}, {"x": w.randn(*lead, n, c)}, {**mhc, **layer}, run)


def skip(w):
    for k, lead in enumerate(LEADS):
        most, depth, temperature = 1 + k, (1, 12, 3, 2, 5)[k], (1.0, 0.3)[k % 2]
        for mode, constraint in (("residual", "simplex"), ("hc", "simplex"), ("mhc", "simplex"), ("mhc", "identity"), ("mhc", "doubly_stochastic")):
            history = {f"history.{h}": w.randn(*lead, 3) for h in range(depth)}
            w.case(f"mhc_skip_{mode}_{constraint}_{tag(*lead)}",
                   {"mode": mode, "constraint": constraint, "max_history": most, "epsilon": 0.2, "temperature": temperature, "history": depth},
                   {"x": w.randn(*lead, 3), **history}, {"mixing_logits": w.randn(most, most) if constraint == "doubly_stochastic" else w.randn(most)},
                   lambda i, p: ref.mhc_skip(mode, constraint, p["mixing_logits"], i["x"], [i[f"history.{h}"] for h in range(depth)], most, 0.2, temperature))
    for n in (1, 2, 33, 500):
        w.case(f"simplex_projection_n{n}", {}, {"v": w.randn(n)}, {}, lambda i, p: ref.simplex_projection(i["v"]))


def transformers(w):
    transformer(w, c=12, layers=1, heads=3, vocab=5, context=13, n=3, tag="_c12")
    transformer(w, c=33, layers=3, heads=1, vocab=40, context=3, n=2, tag="_c33")
    transformer(w, c=4, layers=2, heads=4, vocab=3, context=1, n=1, tag="_c4")
    transformer(w, c=24, layers=2, heads=2, vocab=17, context=20, n=4, tag="_c24")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder")
    args.add_argument("--seed", type=int, default=1)
    args = args.parse_args()
    w = Writer(args.folder, args.seed)
    for group in (norms_and_activations, products_and_losses, sinkhorn, manifold_hyper_connection, stream_modules, skip, transformers):
        group(w)
    print(f"{w.count} cases in {w.folder}")


if __name__ == "__main__":
    main()
