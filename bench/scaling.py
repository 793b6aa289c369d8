#!/usr/bin/python3 -B
"""What a step of data parallel training takes over up to 4,096 ranks, from what dist_step measured and a network's numbers.

    mpirun -n 2 build/bin/dist_step ... >> docs/scaling/measured.jsonl
    bench/scaling.py docs/scaling/measured.jsonl --out docs/scaling

Prints the tables of docs/scaling.md as Markdown; writes efficiency.png.
"""

import argparse
import json
import math
import pathlib

# Seconds that a message takes before its bytes do, and bytes a second: TCP over Ethernet, RoCE, InfiniBand.
NETWORKS = {"10 Gbit/s": (20e-6, 10e9 / 8), "25 Gbit/s": (4e-6, 25e9 / 8), "100 Gbit/s": (1.5e-6, 100e9 / 8)}
RANKS = [2**k for k in range(13)]
BUCKET_BYTES = 256 * 1024
FORWARD = 1 / 3  # of the time of a block; the rest is backward


class Model:
    """Sizes of the reference transformer, T tokens a window and one window a block."""

    def __init__(self, channels, layers, context, vocab=32768):
        self.channels, self.layers, self.context = channels, layers, context
        self.layer_parameters = 12 * channels**2
        self.parameters = layers * self.layer_parameters + 2 * vocab * channels
        matrices = layers * self.layer_parameters + vocab * channels
        self.flops = context * (6 * matrices + 6 * layers * channels * context)
        self.name = f"C {channels}, {layers} layers, {self.parameters / 1e6:.0f} M"

    def messages(self):
        """Tensors above BUCKET_BYTES travel alone: six matrices a layer, embedding and head; the rest is few."""
        per_layer = 6 if 4 * self.channels**2 >= BUCKET_BYTES else math.ceil(4 * self.layer_parameters / BUCKET_BYTES)
        return per_layer * self.layers + 3


class Machine:
    """What one rank does alone, measured."""

    def __init__(self, flops, update, add):
        self.flops, self.update, self.add = flops, update, add  # a second; seconds a parameter; seconds an added element


def step(model, machine, network, ranks, blocks_per_rank=1):
    """Seconds of a step: computing, updating, what of the sum does not hide behind the last block's backward pass."""
    latency, bandwidth = network
    block = model.flops / machine.flops
    compute, update = blocks_per_rank * block, machine.update * model.parameters
    share = 1 - 1 / ranks
    stages = 2 * math.ceil(math.log2(ranks))
    seconds = stages * latency * model.messages() + share * model.parameters * (2 * 4 / bandwidth + machine.add)
    # The head's gradient is the first, the embedding's the last: nothing is left to hide it behind.
    hidden = min(seconds, (1 - FORWARD) * block)
    last = stages * latency + share * 4 * 2 * model.channels * 32768 / bandwidth if ranks > 1 else 0
    exposed = max(seconds - hidden, min(last, seconds))
    return compute, update, exposed


def efficiency(model, machine, network, ranks, blocks_per_rank=1):
    compute, update, exposed = step(model, machine, network, ranks, blocks_per_rank)
    return (compute + update) / (compute + update + exposed)


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def fitted(records):
    """The machine of the largest measured model: its products, its update, its additions."""
    big = max(records, key=lambda r: (r["channels"], r["ranks"] > 1))
    tokens = big["batch"] * big["context"] / big["ranks"]
    matrices = big["layers"] * 12 * big["channels"]**2
    flops = tokens * (6 * matrices + 6 * big["layers"] * big["channels"] * big["context"])
    return Machine(flops / (1e-3 * (big["ms_without_sum"] - big["ms_update"])), 1e-3 * big["ms_update"] / big["parameters"], 0.4e-9)


def draw(models, machine, out):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, len(models), figsize=(4 * len(models), 3.4), sharey=True)
    for axis, model in zip(axes, models):
        for name, network in NETWORKS.items():
            for blocks, style in ((1, "-"), (8, "--")):
                axis.plot(RANKS, [efficiency(model, machine, network, p, blocks) for p in RANKS], style, label=f"{name}, {blocks} a rank")
        axis.set_xscale("log", base=2)
        axis.set_title(model.name, fontsize=10)
        axis.set_xlabel("ranks")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share of a step not spent waiting")
    axes[0].set_ylim(0, 1.02)
    axes[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(out / "efficiency.png", dpi=110)


def main():
    parser = argparse.ArgumentParser(prog="scaling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    arguments = parser.parse_args()
    records = [json.loads(line) for line in arguments.measured.read_text().splitlines()]
    machine = fitted(records)
    print(f"{machine.flops / 1e9:.1f} GFLOP/s a rank, {1e9 * machine.update:.2f} ns a parameter for clipping and AdamW\n")
    models = [Model(384, 6, 256), Model(768, 12, 512), Model(2048, 24, 1024)]
    for blocks in (1, 8):
        table([f"{blocks} blocks a rank"] + [str(p) for p in RANKS[1:]],
              [[f"{model.name}, {name}"] + [f"{100 * efficiency(model, machine, network, p, blocks):.0f}" for p in RANKS[1:]]
               for model in models for name, network in NETWORKS.items()])
    table(["network", "all-gather, ns a parameter", "update, ns a parameter", "sharded update is faster"],
          [[name, f"{4e9 / bandwidth:.2f}", f"{1e9 * machine.update:.2f}", "yes" if 4 / bandwidth < machine.update else "no"]
           for name, (_, bandwidth) in NETWORKS.items()])
    table(["measured", "ranks", "threads", "ms", "without the sum", "of the sum: beside the backward pass", "after it", "alone", "hidden"],
          [[f"C {r['channels']} {r['connection']}", str(r["ranks"]), str(r["threads"]), f"{r['ms_ranks']:.1f}", f"{r['ms_without_sum']:.1f}",
            f"{r['ms_beside_backward']:.1f}", f"{r['ms_after_backward']:.1f}", f"{r['ms_sum_alone']:.1f}", f"{100 * r['hidden']:.0f} %"]
           for r in records])
    draw(models, machine, arguments.out)


if __name__ == "__main__":
    main()
