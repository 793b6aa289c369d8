#!/usr/bin/python3 -B
"""The time of a step of data parallel training over up to 4,096 ranks, from what dist_step measured and a network's numbers.

Reads docs/scaling/measured.jsonl and prints the tables of docs/scaling.md, and those that it sums up; --draw draws
docs/scaling/efficiency.png.
"""

import argparse
import dataclasses
import json
import math
import pathlib

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
RANKS = [2**k for k in range(13)]
BUCKET_BYTES = 256 * 1024  # as in dist/mpi/detail/rank_sum.cpp
FORWARD = 1 / 3            # of the time of a block; the rest is its backward pass


@dataclasses.dataclass
class Network:
    latency: float    # seconds until the first byte of a message arrives
    bandwidth: float  # bytes per second, each way


# TCP over Ethernet, RoCE, InfiniBand: usual numbers, none of them measured here.
NETWORKS = {"10 Gbit/s": Network(20e-6, 10e9 / 8), "25 Gbit/s": Network(4e-6, 25e9 / 8), "100 Gbit/s": Network(1.5e-6, 100e9 / 8)}


@dataclasses.dataclass
class Model:
    """The reference transformer, with its number of windows per block."""
    channels: int
    layers: int
    context: int
    vocab: int = 32768
    windows: float = 1

    @property
    def parameters(self):
        return 12 * self.layers * self.channels**2 + (2 * self.vocab + self.context) * self.channels

    @property
    def flops(self):
        """Operations of the matrix products of a block, forward and backward."""
        matrices = 12 * self.layers * self.channels**2 + self.vocab * self.channels
        return self.windows * self.context * (6 * matrices + 6 * self.layers * self.channels * self.context)

    @property
    def buckets(self):
        """Large tensors are sent alone: four attention and two MLP matrices per layer, embedding, positions and head."""
        sizes = [4 * self.channels**2] * 4 * self.layers + [16 * self.channels**2] * 2 * self.layers
        sizes += [4 * self.vocab * self.channels] * 2
        large = [size for size in sizes if size >= BUCKET_BYTES]
        return len(large) + math.ceil((4 * self.parameters - sum(large)) / BUCKET_BYTES) + 1

    def __str__(self):
        return f"C {self.channels}, {self.layers} layers, {self.parameters / 1e6:.0f} M"


MODELS = [Model(384, 6, 256), Model(768, 12, 512), Model(2048, 24, 1024)]


@dataclasses.dataclass
class Machine:
    """Measurements of one rank alone."""
    flops: float   # per second, in the products of a step
    update: float  # seconds per parameter, clipping and AdamW
    add: float     # seconds per addition of two gradients' elements


def messages(network, ranks, parameters, buckets, ways):
    """Seconds of recursive halving (one way) and doubling (the other)."""
    return ways * (math.ceil(math.log2(ranks)) * network.latency * buckets + (1 - 1 / ranks) * 4 * parameters / network.bandwidth)


def step(model, machine, network, ranks, blocks, sharded=False):
    """Seconds. No computation overlaps with the additions, with messages after the last block's backward pass, or with the sum of the
    embedding's gradient, which is computed last. Sharded: a rank updates its part of the parameters, and then the parts are gathered,
    without overlap."""
    block, share, ways = model.flops / machine.flops, 1 - 1 / ranks, 1 if sharded else 2
    everything = messages(network, ranks, model.parameters, model.buckets, ways)
    last = messages(network, ranks, model.vocab * model.channels, 1, ways)
    waiting = max(everything - (1 - FORWARD) * block, last)
    update = machine.update * model.parameters
    if sharded:
        update, waiting = update / ranks, waiting + everything
    return blocks * block + share * machine.add * model.parameters + waiting + update


def efficiency(model, machine, network, ranks, blocks):
    return step(model, machine, network, 1, blocks) / step(model, machine, network, ranks, blocks)


def crossover(model, machine, network):
    """The fewest ranks for which sharded state is faster."""
    faster = [p for p in RANKS[1:] if step(model, machine, network, p, 1, sharded=True) < step(model, machine, network, p, 1)]
    return f"{faster[0]:,}" if faster else "-"


def whole(machine):
    """A rank of 64 threads, by assumption: products 64 times as fast, memory-bound work 8 times."""
    return Machine(64 * machine.flops, machine.update / 8, machine.add / 8)


def model_of(record):
    return Model(record["channels"], record["layers"], record["context"], 65, record["batch"] / record["blocks"])


def block_ms(record):
    """The time of computing one block."""
    return (record["ms_without_sum"] - record["ms_update"]) / (record["blocks"] / record["ranks"])


def fitted(records):
    """The machine and an equivalent of its network, from the largest model on several ranks."""
    big = max((r for r in records if r["ranks"] > 1), key=lambda r: r["parameters"])
    machine = Machine(model_of(big).flops / (1e-3 * block_ms(big)), 1e-3 * big["ms_update"] / big["parameters"],
                      1e-3 * big["ms_add"] / big["parameters"])
    return machine, Network(2e-6, (1 - 1 / big["ranks"]) * 2 * 4 * big["parameters"] / (1e-3 * big["ms_sum_alone"]))


def on_one_machine(record, network):
    """Milliseconds of a step: the processors that compute also copy the messages, so that the two do not overlap."""
    model = model_of(record)
    return record["ms_without_sum"] + 1e3 * messages(network, record["ranks"], record["parameters"], model.buckets, 2)


def table(head, rows):
    under = ["---"] + ["---:"] * (len(head) - 1)
    cells = [[f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in [head, under, *rows]]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def draw(models, machine, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, len(models), figsize=(4 * len(models), 3.8), sharey=True)
    for axis, model in zip(axes, models):
        for color, (name, network) in enumerate(NETWORKS.items()):
            for blocks, style in ((1, "-"), (8, "--")):
                axis.plot(RANKS, [efficiency(model, machine, network, p, blocks) for p in RANKS], style, color=f"C{color}",
                          label=f"{name}, {blocks} block{'s' * (blocks > 1)} a rank")
        axis.set_xscale("log", base=2)
        axis.set_title(f"{model}, 64 threads a rank", fontsize=9)
        axis.set_xlabel("ranks")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("part of a step that is not waiting")
    axes[0].set_ylim(0, 1.02)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="lower center", ncol=3)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    figure.savefig(path, dpi=110)


def tables(records):
    """The tables of docs/scaling.md, which follow from measurements."""
    machine, shared_memory = fitted(records)
    measured = table(
        ["measured, ms", "ranks x threads", "one process, as many threads", "ranks", "without the sum", "MPI_Allreduce",
         "against it", "sum alone", "during backward", "after backward", "hidden"],
        [[f"C {r['channels']} {r['connection']}", f"{r['ranks']} x {r['threads']}", r["ms_alone"], r["ms_ranks"], r["ms_without_sum"],
          r["ms_plain_sum"], f"{100 * r['over_plain_sum']:+.1f} %", r["ms_sum_alone"], r["ms_beside_backward"], r["ms_after_backward"],
          f"{100 * r['hidden']:.0f} %"] for r in records if r["ranks"] > 1])
    check = table(["model against measurement, ms a step", "ranks", "model", "measured"],
                  [[f"C {r['channels']} {r['connection']}", r["ranks"], on_one_machine(r, shared_memory), r["ms_ranks"]] for r in records])
    numbers = (f"A thread: {machine.flops / 1e9:.1f} GFLOP/s, {1e9 * machine.update:.2f} ns a parameter for the update, "
               f"{1e9 * machine.add:.2f} ns for an addition; {shared_memory.bandwidth / 1e9:.1f} GB/s between ranks.\n")
    ranks = [2, 8, 64, 512, 4096]
    busy = [
        table([f"busy, %, {threads} thread{'s' * (threads > 1)} a rank"] + [f"{p:,} ranks" for p in ranks],
              [[f"{model}, {name}"] + [" / ".join(f"{100 * efficiency(model, rank, network, p, blocks):.0f}" for blocks in (1, 8))
                                       for p in ranks] for model in MODELS for name, network in NETWORKS.items()])
        for threads, rank in ((1, machine), (64, whole(machine)))]
    sharded = table(
        ["sharding is faster from ranks, at threads a rank"] + [f"{name}, {threads}" for name in NETWORKS for threads in (1, 64)],
        [[str(model)] + [crossover(model, rank, network) for network in NETWORKS.values() for rank in (machine, whole(machine))]
         for model in MODELS])
    return [measured, numbers, check, *busy, sharded]


def main():
    parser = argparse.ArgumentParser(prog="scaling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true")
    arguments = parser.parse_args()
    records = [json.loads(line) for line in (DOCS / "scaling/measured.jsonl").read_text().splitlines()]
    print(*tables(records), sep="\n", end="")
    if arguments.draw:
        draw(MODELS, whole(fitted(records)[0]), DOCS / "scaling/efficiency.png")


if __name__ == "__main__":
    main()
