#!/usr/bin/env python3
"""Times attention, in f32 and bf16, convolution and experts of braid and of PyTorch in turn: bench/ops_beside_pytorch.py

Prints medians in milliseconds and how many times as fast braid is. Needs torch, and build/bin/bench_ops (`./dev bench` makes it).
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

import torch

BENCH = pathlib.Path(__file__).resolve().parents[1] / "build/bin/bench_ops"


def attention(batch, length, heads, key_heads, depth, causal=True, dtype=torch.float32):
    q = torch.randn(batch, heads, length, depth, dtype=dtype)
    k, v = (torch.randn(batch, key_heads, length, depth, dtype=dtype) for _ in range(2))
    grouped = key_heads != heads
    return [q, k, v], lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)


def conv2d(batch, size, channels, layout):
    """With PyTorch's own layout or with channels last in memory, as braid has them."""
    x = torch.randn(batch, channels, size, size).to(memory_format=layout)
    weight = torch.randn(channels, channels, 3, 3).to(memory_format=layout)
    return [x, weight, torch.randn(channels)], lambda x, w, b: torch.nn.functional.conv2d(x, w, b, padding=1)


def gelu_mlp(x, up, down):
    return torch.nn.functional.gelu(x @ up.T, approximate="tanh") @ down.T


def mlp(tokens, channels):
    hidden = 4 * channels
    return [torch.randn(tokens, channels) * .05, torch.randn(hidden, channels), torch.randn(channels, hidden)], gelu_mlp


def experts(tokens, channels, count, top):
    """As transformers' mixtures: each expert takes its tokens and adds to their sums."""
    hidden = 4 * channels // top
    weights = [torch.randn(*shape) for _ in range(count) for shape in [(hidden, channels), (channels, hidden)]]

    def mixture(x, router, *weights):
        shares, chosen = torch.topk(torch.softmax(x @ router.T, -1), top)
        shares = shares / shares.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for e in range(count):
            token, place = torch.where(chosen == e)
            y = y.index_add(0, token, gelu_mlp(x[token], *weights[2 * e:2 * e + 2]) * shares[token, place, None])
        return y

    return [torch.randn(tokens, channels) * .05, torch.randn(count, channels), *weights], mixture


# name in bench_ops, PyTorch's inputs and function
CASES = [("attention/12x64x4x32", attention(12, 64, 4, 4, 32)),
         ("attention/8x256x6x64", attention(8, 256, 6, 6, 64)),
         ("attention_full/8x256x6x64", attention(8, 256, 6, 6, 64, causal=False)),
         ("attention_grouped/8x256x6x64", attention(8, 256, 6, 2, 64)),
         ("attention_bf16/8x256x6x64", attention(8, 256, 6, 6, 64, dtype=torch.bfloat16)),
         *((f"attention_long{name}/1x{length}x6x64", attention(1, length, 6, 6, 64, dtype=dtype))
           for name, dtype in [("", torch.float32), ("_bf16", torch.bfloat16)] for length in (1024, 2048, 4096, 8192)),
         ("conv2d/8x56x56x64", conv2d(8, 56, 64, torch.contiguous_format)),
         ("conv2d/8x56x56x64", conv2d(8, 56, 64, torch.channels_last)),
         ("conv2d/8x28x28x128", conv2d(8, 28, 128, torch.contiguous_format)),
         ("conv2d/8x28x28x128", conv2d(8, 28, 128, torch.channels_last)),
         ("mlp/2048x384", mlp(2048, 384)),
         ("experts/2048x384", experts(2048, 384, 8, 2))]


def braid(name, threads):
    """Milliseconds of forward and vjp."""
    command = [BENCH, f"--benchmark_filter=^{name}/(forward|vjp)/fused", "--benchmark_format=json", "--benchmark_min_time=0.2"]
    report = subprocess.run(command, capture_output=True, check=True, env={"BRAID_NUM_THREADS": str(threads)}).stdout
    times = {run["name"].split("/")[2]: run["real_time"] for run in json.loads(report)["benchmarks"]}
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1}[json.loads(report)["benchmarks"][0]["time_unit"]]
    return times["forward"] * unit, times["vjp"] * unit


def pytorch(inputs, function):
    forward, backward = [], []
    inputs = [x.requires_grad_() for x in inputs]
    dy = torch.randn_like(function(*inputs))
    for _ in range(20):
        for x in inputs:
            x.grad = None
        times = [time.perf_counter()]
        y = function(*inputs)
        times.append(time.perf_counter())
        y.backward(dy)
        forward.append(times[1] - times[0])
        backward.append(time.perf_counter() - times[1])
    return statistics.median(forward) * 1e3, statistics.median(backward) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--filter", default="", help="only cases whose names contain it")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} threads, medians of {options.rounds} rounds")
    for name, (inputs, function) in (case for case in CASES if options.filter in case[0]):
        rounds = [braid(name, options.threads) + pytorch(inputs, function) for _ in range(options.rounds)]
        ours, our_vjp, theirs, their_vjp = map(statistics.median, zip(*rounds))
        print(f"{name:<30} forward {ours:8.3f} {theirs:8.3f} {theirs / ours:5.2f}x    vjp {our_vjp:8.3f} {their_vjp:8.3f} {their_vjp / our_vjp:5.2f}x",
              flush=True)


if __name__ == "__main__":
    main()
