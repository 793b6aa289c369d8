#!/usr/bin/python3 -B
"""The numbers that train_lm writes, computed again by slow formulas from its checkpoints: train_lm_numbers_test.py PROGRAM"""
import functools
import itertools
import json
import math
import pathlib
import random
import sys
import tempfile
import time
from statistics import fmean as mean

from program import check, run, without_pictures, write_text
from tiny_run import TINY, shaped_tensors

CONTEXT, BATCH, HEADS, STEPS = 8, 2, 2, 12
BETA1, BETA2 = 0.9, 0.99
SUBLAYERS = [f"blocks.{i}.{part}" for i in range(2) for part in ("attention", "mlp")]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def linear(p, name, x):
    y = [dot(row, x) for row in p[f"{name}.weight"]]
    return [a + b for a, b in zip(y, p[f"{name}.bias"], strict=True)] if f"{name}.bias" in p else y


def rms_norm(p, name, x):
    scale = 1 / math.sqrt(dot(x, x) / len(x) + 1e-5)
    return [v * scale * w for v, w in zip(x, p[f"{name}.weight"], strict=True)]


def softmax(scores):
    exps = [math.exp(s - max(scores)) for s in scores]
    return [e / sum(exps) for e in exps]


def attention(p, name, xs):
    q, k, v = ([linear(p, f"{name}.{part}", x) for x in xs] for part in "qkv")
    size, mixed = len(q[0]) // HEADS, [[] for _ in xs]
    for head in (slice(h * size, (h + 1) * size) for h in range(HEADS)):
        for t, y in enumerate(mixed):
            shares = softmax([dot(q[t][head], k[s][head]) / math.sqrt(size) for s in range(t + 1)])
            y += [dot(shares, column) for column in columns([v[s][head] for s in range(t + 1)])]
    return [linear(p, f"{name}.o", y) for y in mixed]


def mlp(p, name, xs):
    gelu = lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2
    return [linear(p, f"{name}.down", [gelu(h) for h in linear(p, f"{name}.up", x)]) for x in xs]


def maps_of(p, name):
    """h_pre, h_post and h_res of static hyper-connections, or of the plain residual."""
    return [p.get(f"{name}.connection.{key}", one) for key, one in (("b_pre", [1]), ("b_post", [1]), ("b_res", [[1]]))]


def loss(p, ids, seen=()):
    """The mean loss of all ids but the first, given those before. Adds each token's streams in front of each sublayer to `seen`."""
    start = [[a + b for a, b in zip(p["embedding.weight"][token], at)] for token, at in zip(ids[:-1], p["positions"])]
    streams = [[x] * len(maps_of(p, SUBLAYERS[0])[0]) for x in start]
    for name, sight in zip(SUBLAYERS, seen or [[] for _ in SUBLAYERS], strict=True):
        sight += streams
        pre, post, res = maps_of(p, name)
        inputs = [rms_norm(p, f"{name}.norm", [dot(pre, c) for c in columns(xs)]) for xs in streams]
        ys = (attention if name.endswith("attention") else mlp)(p, name, inputs)
        streams = [[[dot(row, c) + write * y[i] for i, c in enumerate(columns(xs))] for row, write in zip(res, post)] for xs, y in zip(streams, ys)]
    logits = [linear(p, "head", rms_norm(p, "norm", [mean(c) for c in columns(xs)])) for xs in streams]
    return mean([-math.log(softmax(row)[target]) for row, target in zip(logits, ids[1:], strict=True)])


def near(what, value, expected, tolerance):
    check(abs(value - expected) <= tolerance, f"{what} is {value}, but {expected} by the checkpoint")


def check_losses(line, window, held_out, before, after):
    """val_loss is that of all held-out windows; train_loss that of a batch of the windows of the training text: five different ones."""
    near("val_loss", line["val_loss"], mean([loss(after, window(at)) for at in held_out]), 2e-5)
    batches = map(mean, itertools.combinations_with_replacement([loss(before, window(at)) for at in range(5)], BATCH))
    near("train_loss", line["train_loss"], min(batches, key=lambda value: abs(value - line["train_loss"])), 2e-5)


def check_step(line, clip, before, after):
    """A step of AdamW: the gradients by the first moments, then second moments and weights; norms and vectors do not decay."""
    squares, lr = 0, line["learning_rate"]
    for name in [name.removeprefix("model.") for name in after if name.startswith("model.")]:
        is_matrix = isinstance(after[f"model.{name}"][0], list)
        flat = lambda file, kind: list(itertools.chain(*file[f"{kind}.{name}"])) if is_matrix else file[f"{kind}.{name}"]
        moments = [[flat(file, f"optimizer.{kind}_moment") for file in (before, after)] for kind in ("first", "second")]
        grads = [(m - BETA1 * old) / (1 - BETA1) for old, m in zip(*moments[0])]
        squares += dot(grads, grads)
        decay = lr * 0.1 if is_matrix and name.endswith(".weight") else 0
        for grad, m, old, v, w, now in zip(grads, moments[0][1], *moments[1], flat(before, "model"), flat(after, "model"), strict=True):
            near(f"{name}: a second moment", v, BETA2 * old + (1 - BETA2) * grad * grad, 1e-4 * max(moments[1][1]))
            step = m / (1 - BETA1 ** STEPS) / (math.sqrt(v / (1 - BETA2 ** STEPS)) + 1e-8)
            near(f"{name}: a weight", now, w - decay * w - lr * step, 1e-6)
    near("the norm of the gradients", math.sqrt(squares), min(clip, line["grad_norm"]), 1e-4 * min(clip, line["grad_norm"]))


def check_telemetry(lines, windows, p):
    """Gains, errors and similarities of static hyper-connections, on the first held-out batch."""
    seen, maps = [[] for _ in SUBLAYERS], [maps_of(p, name)[2] for name in SUBLAYERS]
    for window in windows:
        loss(p, window, seen)
    product = lambda b, a: [[dot(row, column) for column in columns(a)] for row in b]
    gain, error = (lambda rows: max(abs(sum(row)) for row in rows)), (lambda rows: max(abs(sum(row) - 1) for row in rows))
    cosine = lambda a, b: dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))
    for i, (line, h) in enumerate(zip(lines, maps, strict=True)):
        expected = {"connection": i, "forward_gain": gain(h), "backward_gain": gain(columns(h)),
                    "row_error": error(h), "column_error": error(columns(h)),
                    "composed_forward_gain": gain(functools.reduce(lambda a, b: product(b, a), maps[:i + 1])),
                    "composed_backward_gain": gain(columns(functools.reduce(lambda a, b: product(b, a), maps[i:]))),
                    "similarity": mean([cosine(a, b) for xs in seen[i] for a, b in itertools.combinations(xs, 2)])}
        check(set(line) == set(expected) | {"step", "saturation"} and line["saturation"] is None, f"telemetry {line}")
        for key, value in expected.items():
            near(f"connection {i}: {key}", line[key], value, 1e-5)


def train(program, folder, *flags):
    result = run(program, *flags)
    check(result.returncode == 0, f"{flags}: {result.stderr}")
    return result


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def files(program, folder):
    """The text to train on has period 5, so that it has five windows; evaluations have 8 + 3 windows."""
    text = "abcde" * 162 + "".join(random.Random(1).choices("abcde", k=90))
    window, held_out = (lambda at: ["abcde".index(c) for c in text[at:at + CONTEXT + 1]]), range(810, 900 - CONTEXT, CONTEXT)
    (folder / "period.txt").write_text(text)
    flags = ["--text", folder / "period.txt", "--layers", 2, "--channels", 8, "--heads", HEADS, "--context", CONTEXT, "--batch", BATCH,
             "--steps", STEPS, "--warmup", 4, "--lr", 0.03, "--eval-every", 1, "--telemetry-every", 1, "--checkpoint-every", 1, "--sample", 30]
    norms = []
    for clip, connection in ((1000, ["residual"]), (0.1, ["residual"]), (1000, ["hc", "--hc-static", "--streams", 3, "--lr", 0.1])):
        out = folder / f"{connection[0]}-{clip}"
        result = train(program, folder, *flags, "--clip", clip, "--out", out, "--connection", *connection)
        lines, (sample,) = lines_of(out / "metrics.jsonl"), lines_of(out / "samples.jsonl")
        before, after = (shaped_tensors(out / name) for name in ("checkpoint.previous.safetensors", "checkpoint.safetensors"))
        models = [{name.removeprefix("model."): value for name, value in file.items() if name.startswith("model.")} for file in (before, after)]
        check_losses(lines[-1], window, held_out, *models)
        check_step(lines[-1], clip, before, after)
        if connection[0] == "hc":
            stats = [line for line in lines_of(out / "telemetry.jsonl") if line["step"] == STEPS]
            check_telemetry(stats, [window(at) for at in held_out[:BATCH]], models[1])
        check(sample["step"] == STEPS and len(sample["text"]) == 30 and f"\n--- sample ---\n{sample['text']}\n" in result.stdout, f"{sample}")
        norms.append(lines[0]["grad_norm"])
    check(norms[0] == norms[1] > 0.1, f"grad_norm is that in front of the clipping: {norms}")


def speed(program, folder):
    start = time.monotonic()
    train(program, folder, "--text", write_text(folder), "--layers", 2, "--channels", 64, "--steps", 30, "--sample", 0, "--out", folder / "speed")
    whole, steps = time.monotonic() - start, sum(12 * 64 / line["tokens_per_s"] for line in lines_of(folder / "speed/metrics.jsonl"))
    check(whole / 100 < steps < whole, f"the steps took {steps} s by tokens_per_s, the run {whole} s")


def constraints(program, folder):
    """With --skip-projection post_step the weights of a checkpoint lie in their set; without, these steps lead out of it."""
    flags = ["--text", write_text(folder), *TINY, "--layers", 2, "--connection", "skip", "--max-history", 3, "--skip-init", "uniform",
             "--skip-epsilon", 0.4, "--lr", 0.05, "--warmup", 0, "--steps", 5]
    for constraint, projection in itertools.product(("simplex", "identity", "doubly_stochastic"), ("post_step", "none")):
        out = folder / f"{constraint}-{projection}"
        train(program, folder, *flags, "--skip-constraint", constraint, "--skip-projection", projection, "--out", out)
        tensors = {name: value for name, value in shaped_tensors(out / "checkpoint.safetensors").items() if name.endswith("mixing_logits")}
        weights, error = [value for name, value in tensors.items() if name.startswith("model.")], 0
        check(len(weights) == 4, f"{out.name}: {list(tensors)}")
        for rows in (value if isinstance(value[0], list) else [value] for value in weights):
            for line in rows + (columns(rows) if constraint == "doubly_stochastic" else []):
                error = max(error, abs(sum(line) - 1), -min(line), 0.4 - line[2] if constraint == "identity" else 0)
        check(error < 1e-5 if projection == "post_step" else error > 1e-3, f"{out.name}: {error} outside of the set")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        without_pictures(pathlib.Path(name))
        for part in (files, speed, constraints):
            part(sys.argv[1], pathlib.Path(name))
