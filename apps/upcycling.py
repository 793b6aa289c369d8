#!/usr/bin/python3 -B
"""Measures the effect of hyper-connections on trained networks: trains residual models, continues each under several
connections, and writes upcycling.md and upcycling.png. Repeating the command continues an interrupted run.

    apps/upcycling.py --out runs/upcycling --text tinyshakespeare.txt

About 25 minutes on two cores. Flags after -- are passed to every train_lm: -- --layers 2 --channels 64
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ["--layers", "6", "--channels", "192", "--heads", "6", "--context", "64", "--batch", "12"]
SCRATCH = ["--lr", "1e-3", "--min-lr", "1e-4", "--eval-every", "250"]
FURTHER = ["--lr", "5e-4", "--min-lr", "5e-5", "--warmup", "50", "--eval-every", "100"]
COLORS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")  # Okabe and Ito's, as in compare_connections.py


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/upcycling"), help="results folder")
    parser.add_argument("--text", help="text file to learn (default: the system's license texts)")
    parser.add_argument("--connections", nargs="+", default=["residual", "mhc", "hc"], metavar="KIND", help="the first is the baseline")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="SEED")
    parser.add_argument("--steps", type=int, default=2000, help="training steps of the residual model")
    parser.add_argument("--more", type=int, default=1000, help="further steps under each connection")
    parser.add_argument("--train-lm", type=pathlib.Path, default=ROOT / "build/bin/train_lm", help="the program")
    parser.add_argument("flags", nargs="*", help="further flags of train_lm")
    return parser.parse_args()


def train(program, out, flags):
    """Starts or continues a run of train_lm; returns its held-out losses by step."""
    resume = ["--resume"] if (out / "config.json").exists() else []
    command = [program, "--out", out, "--sample", "0", *flags, *resume]
    print("+", *command, flush=True)
    result = subprocess.run(list(map(str, command)))
    if result.returncode != 0:
        sys.exit(result.returncode)
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return {line["step"]: line["val_loss"] for line in lines if "val_loss" in line}


def run_all(options):
    """{seed: (losses of the residual model, {connection: losses from its end on})}, losses by step."""
    text = ["--text", options.text] if options.text else []
    curves = {}
    for seed in options.seeds:
        folder, common = options.out / f"seed-{seed}", [*text, "--seed", seed]
        start = train(options.train_lm, folder / "start", [*MODEL, *SCRATCH, "--steps", options.steps, *common, *options.flags])
        further = {}
        for kind in options.connections:
            batch = [*MODEL[-2:], *FURTHER, "--steps", options.more]  # other sizes are those of the model
            flags = ["--init", folder / "start", "--connection", kind, *batch, *common, *options.flags]
            further[kind] = train(options.train_lm, folder / kind, flags)
        curves[seed] = start, further
    return curves


def spread(values):
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def table(options, curves):
    """One row a connection: held-out losses where it began and ended, and what it gained on the baseline with the same seed."""
    ends = {kind: [list(further[kind].values())[-1] for _, further in curves.values()] for kind in options.connections}
    baseline = ends[options.connections[0]]
    seeds = " | ".join(f"seed {seed}" for seed in options.seeds)
    rows = [f"| connection | at its start | {seeds} | mean and deviation | minus {options.connections[0]} |",
            "|---" * (4 + len(options.seeds)) + "|"]
    for kind, losses in ends.items():
        first = statistics.mean(further[kind][0] for _, further in curves.values())
        gain = spread([mine - its for mine, its in zip(losses, baseline)])
        rows.append(f"| `{kind}` | {first:.4f} | " + " | ".join(f"{loss:.4f}" for loss in losses) + f" | {spread(losses)} | {gain} |")
    return "\n".join(rows) + "\n"


def draw(options, curves, picture):
    """Held-out losses, means over seeds with all seeds between their bounds, and each seed's distance from the baseline."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")

    def band(axes, runs, label, color):
        steps = list(runs[0])
        values = [[run[step] for run in runs] for step in steps]
        axes.plot(steps, [statistics.mean(v) for v in values], "o-", color=color, markersize=3, linewidth=1.4, label=label)
        axes.fill_between(steps, [min(v) for v in values], [max(v) for v in values], color=color, alpha=0.15, linewidth=0)

    def shifted(run):
        return {step + options.steps: loss for step, loss in run.items()}

    starts = [{step: loss for step, loss in start.items()} for start, _ in curves.values()]
    band(left, starts, "residual, from scratch", "#999999")
    baseline = [further[options.connections[0]] for _, further in curves.values()]
    for kind, color in zip(options.connections, COLORS):
        runs = [further[kind] for _, further in curves.values()]
        band(left, list(map(shifted, runs)), f"then {kind}", color)
        band(right, [{step + options.steps: run[step] - its[step] for step in run} for run, its in zip(runs, baseline)], kind, color)
    left.set(xlabel="step", ylabel="held-out loss [nats]", title=f"Mean and range of {len(curves)} seeds")
    right.set(xlabel="step", ylabel=f"minus {options.connections[0]}, seed by seed", title="Lower is better")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(picture, dpi=130)


def main():
    options = arguments()
    curves = run_all(options)
    text = table(options, curves)
    (options.out / "upcycling.md").write_text(text)
    draw(options, curves, options.out / "upcycling.png")
    print(text, end="")


if __name__ == "__main__":
    main()
