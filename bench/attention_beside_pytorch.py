#!/usr/bin/env python3
"""Times braid's attention and PyTorch's scaled_dot_product_attention in turn, in f32: bench/attention_beside_pytorch.py

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
# name in bench_ops, B, T, H, H_kv, D, causal
CASES = [("attention/12x64x4x32", 12, 64, 4, 4, 32, True),
         ("attention/8x256x6x64", 8, 256, 6, 6, 64, True),
         ("attention_full/8x256x6x64", 8, 256, 6, 6, 64, False),
         ("attention_grouped/8x256x6x64", 8, 256, 6, 2, 64, True),
         ("attention_long/1x2048x6x64", 1, 2048, 6, 6, 64, True)]


def braid(name, threads):
    """Milliseconds of forward and vjp."""
    command = [BENCH, f"--benchmark_filter=^{name}/(forward|vjp)/fused", "--benchmark_format=json", "--benchmark_min_time=0.2"]
    report = subprocess.run(command, capture_output=True, check=True, env={"BRAID_NUM_THREADS": str(threads)}).stdout
    times = {run["name"].split("/")[2]: run["real_time"] for run in json.loads(report)["benchmarks"]}
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1}[json.loads(report)["benchmarks"][0]["time_unit"]]
    return times["forward"] * unit, times["vjp"] * unit


def pytorch(batch, length, heads, key_heads, depth, causal):
    q = torch.randn(batch, heads, length, depth, requires_grad=True)
    k, v = (torch.randn(batch, key_heads, length, depth, requires_grad=True) for _ in range(2))
    dy, forward, backward = torch.randn(q.shape), [], []
    for _ in range(20):
        q.grad = k.grad = v.grad = None
        times = [time.perf_counter()]
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=key_heads != heads)
        times.append(time.perf_counter())
        y.backward(dy)
        forward.append(times[1] - times[0])
        backward.append(time.perf_counter() - times[1])
    return statistics.median(forward) * 1e3, statistics.median(backward) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} threads, medians of {options.rounds} rounds")
    for name, *sizes in CASES:
        rounds = [braid(name, options.threads) + pytorch(*sizes) for _ in range(options.rounds)]
        ours, our_vjp, theirs, their_vjp = map(statistics.median, zip(*rounds))
        print(f"{name:<30} forward {ours:8.3f} {theirs:8.3f} {theirs / ours:5.2f}x    vjp {our_vjp:8.3f} {their_vjp:8.3f} {their_vjp / our_vjp:5.2f}x",
              flush=True)


if __name__ == "__main__":
    main()
