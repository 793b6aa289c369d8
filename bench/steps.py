#!/usr/bin/python3 -B
"""Times training steps: beside PyTorch's, beside another build's, and as work grows. And products with the Hessian.

    bench/steps.py beside --python venv/bin/python    # an interpreter with torch; --compile: the compiled step too
    bench/steps.py beside --other ../old/build/bin/train_step    # instead of PyTorch
    bench/steps.py connections                        # every connection: parameters, time and memory
    bench/steps.py hvp --python venv/bin/python       # products with the Hessian beside PyTorch's two modes
    bench/steps.py growth                             # draws docs/growth.png; needs matplotlib

Prints Markdown tables of medians over rounds, in which the programs take turns, and appends every run to
bench-results/steps.jsonl. Needs build/bin/train_step.
"""
import argparse
import collections
import datetime
import importlib.util
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench-results/steps.jsonl"
KINDS = [(connection, dtype) for connection in ("residual", "mhc") for dtype in ("f32", "bf16")]
STYLES = dict(zip(KINDS, [("#0072b2", "o-"), ("#0072b2", "o:"), ("#d55e00", "s-"), ("#d55e00", "s:")]))
START = 20e9  # operations in the time that a process takes to start

Case = collections.namedtuple("Case", "connection dtype channels layers heads context batch streams")
BASE = Case("mhc", "f32", channels=256, layers=4, heads=4, context=128, batch=8, streams=4)
SIZES = {128: {"layers": 6, "heads": 4, "context": 128, "batch": 16}, 384: {"layers": 6, "heads": 6, "context": 256, "batch": 8},
         768: {"layers": 2, "heads": 12, "context": 256, "batch": 4}}
SWEEPS = {"tokens": [{"batch": batch} for batch in (2, 4, 8, 16, 32)],
          "layers": [{"layers": layers} for layers in (2, 4, 8, 16)],
          "channels": [{"channels": channels, "heads": channels // 64} for channels in (64, 128, 256, 512, 1024)],
          "streams": [{"streams": streams} for streams in (1, 2, 4, 8, 16)],
          "context": [{"context": context, "batch": 1024 // context} for context in (64, 128, 256, 512, 1024)]}


def fail(message):
    print(f"steps: {message}", file=sys.stderr)
    sys.exit(2)


def positive(text):
    if (number := int(text)) < 1:
        raise ValueError
    return number


def output(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
        fail(f"{pathlib.Path(command[0]).name}: {said[-1]}")
    return done.stdout


def work(case, steps):
    """Operations of the products in a run, warm-up included, and the equivalent of starting it."""
    per_token = case.layers * (72 * case.channels**2 + 6 * case.channels * case.context)
    return START + (2 + steps) * case.batch * case.context * per_token


def measure(programs, cases, options, time_key="ms_per_step"):
    """{(program, case): medians over the rounds}; the programs of a case take turns."""
    for command in programs.values():
        output([*command, "--help"])
    RESULTS.parent.mkdir(exist_ok=True)
    records = collections.defaultdict(list)
    whole = options.rounds * len(programs) * sum(work(case, options.steps) for case in cases)
    date, start, done = datetime.datetime.now().isoformat(timespec="seconds"), time.monotonic(), 0
    for number, case, (name, command) in ((r, c, p) for r in range(options.rounds) for c in cases for p in programs.items()):
        sizes = case._asdict() | {"steps": options.steps, "threads": options.threads}
        record = json.loads(output([*command, *(f"--{flag}={value}" for flag, value in sizes.items() if value is not None)]))
        with RESULTS.open("a") as file:
            print(json.dumps({"date": date, "command": options.command, "program": name, "round": number, **record}), file=file)
        records[name, case].append(record)
        done += work(case, options.steps)
        left = (time.monotonic() - start) * (whole / done - 1)
        print(f"round {number + 1} of {options.rounds}, {left / 60:.1f} minutes left: {name}, {', '.join(map(str, case))}: "
              f"{record[time_key]:.1f} ms", file=sys.stderr)
    return {run: {key: statistics.median(record[key] for record in rounds)
                  for key in ("ms_per_step", "ms_gradient", "ms_hvp", "peak_rss_mb", "parameters") if key in rounds[0]}
            for run, rounds in records.items()}


def table(head, rows):
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in [head, ["---"] * len(head), *rows])


def beside(options):
    peer = [options.python, str(ROOT / "bench/torch_step.py")]
    if options.other:
        peers = {"other build": [options.other]}
    else:
        peers = {"PyTorch": peer} | ({"compiled": [*peer, "--compile"]} if options.compile else {})
    programs = {"braid": [options.train_step], **peers}
    cases = [BASE._replace(connection=connection, dtype=dtype, channels=channels, **SIZES[channels])
             for channels in options.sizes for connection in options.connections for dtype in ("f32", "bf16")]
    medians = measure(programs, cases, options)
    rows = []
    for case in cases:
        ours, *theirs = (medians[name, case] for name in programs)
        size = f"C {case.channels}, {case.layers} layers, {case.heads} heads, T {case.context}, B {case.batch}"
        peers = [f"{peer['ms_per_step']:.1f} ms ({peer['ms_per_step'] / ours['ms_per_step']:.2f})" for peer in theirs]
        memory = ", ".join(f"{each['peak_rss_mb']:.0f}" for each in (ours, *theirs))
        rows.append([f"{case.connection}, {case.dtype}, {size}", f"{ours['ms_per_step']:.1f} ms", *peers, f"{memory} MB"])
    print(table(["step", *programs, "peak memory, in this order"], rows), end="")


def all_connections(train_step):
    output([train_step, "--help"])  # or fails
    said = subprocess.run([train_step, "--connection=?"], capture_output=True, text=True).stderr
    return re.search("one of (.*) but", said)[1].split(", ")


def connections(options):
    options.connections = options.connections or all_connections(options.train_step)
    sizes = [(channels, dtype) for channels in options.sizes for dtype in ("f32", "bf16")]
    cases = {(connection, *size): BASE._replace(connection=connection, dtype=size[1], channels=size[0], streams=None, **SIZES[size[0]])
             for connection in options.connections for size in sizes}
    medians = measure({"braid": [options.train_step]}, list(cases.values()), options)
    rows = []
    for connection in options.connections:
        each = [medians["braid", cases[connection, *size]] for size in sizes]
        plain = [medians["braid", cases[options.connections[0], *size]] for size in sizes]
        rows.append([connection, *(f"{one['parameters']:,}" for one in each[::2]),
                     *(f"{one['ms_per_step']:.1f} ms ({one['ms_per_step'] / base['ms_per_step']:.2f}), {one['peak_rss_mb']:.0f} MB"
                       for one, base in zip(each, plain))])
    print(table(["connection", *(f"parameters, C {channels}" for channels in options.sizes),
                 *(f"C {channels}, {dtype}" for channels, dtype in sizes)], rows), end="")


def hvp(options):
    peer = [options.python, str(ROOT / "bench/torch_hvp.py")]
    programs = {"braid": [options.train_step, "--hvp"], "PyTorch, reverse": peer, "forward": [*peer, "--mode", "forward"]}
    cases = [BASE._replace(connection=connection, dtype=dtype, channels=channels, **SIZES[channels])
             for channels in options.sizes for connection in ("residual", "mhc") for dtype in ("f32", "f64")
             if dtype == "f32" or channels < 384]  # where PyTorch's forward mode takes more than 20 GB
    medians = measure(programs, cases, options, "ms_hvp")
    rows = []
    for case in cases:
        each = [medians[name, case] for name in programs]
        fastest = min(peer["ms_hvp"] for peer in each[1:])
        rows.append([f"{case.connection}, C {case.channels}, {case.dtype}",
                     *(f"{one['ms_hvp']:.0f} ms ({one['ms_hvp'] / one['ms_gradient']:.1f} gradients)" for one in each),
                     f"{fastest / each[0]['ms_hvp']:.2f}", ", ".join(f"{one['peak_rss_mb']:.0f}" for one in each) + " MB"])
    print(table(["product", *programs, "times as fast", "peak memory, in this order"], rows), end="")


def curve(sweep, kind):
    """The cases of a sweep; the residual network has no streams."""
    connection, dtype = kind
    changes = [] if (sweep, connection) == ("streams", "residual") else SWEEPS[sweep]
    return [BASE._replace(connection=connection, dtype=dtype, **change) for change in changes]


def size_of(sweep, case):
    return case.batch * case.context if sweep == "tokens" else getattr(case, sweep)


def exponent(points):
    """Of time in size, over the upper half of a sweep, by least squares of the logarithms."""
    upper = points[len(points) // 2:]
    return statistics.linear_regression(*([math.log(value) for value in axis] for axis in zip(*upper))).slope


def draw(curves, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    columns = min(3, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure, grid = plt.subplots(rows, columns, figsize=(4 * columns, 3.6 * rows), sharey=True, layout="constrained", squeeze=False)
    for unused in grid.flat[len(curves):]:
        unused.set_visible(False)
    for axes, (sweep, kinds) in zip(grid.flat, curves.items()):
        for kind, points in kinds.items():
            color, style = STYLES[kind]
            axes.plot(*zip(*points), style, color=color, linewidth=1.4, markersize=5, markerfacecolor="white",
                      label=f"{' '.join(kind)}: {exponent(points):.2f}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        sizes = [size for size, _ in points]
        axes.set_xticks(sizes, labels=map(str, sizes))
        axes.set_xlabel(sweep)
        axes.grid(alpha=0.3)
        axes.legend(title="exponent", fontsize="small")
    for first in grid[:, 0]:
        first.set_ylabel("time of a step [ms]")
    figure.suptitle("A training step as work grows; the exponents are of the upper half")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def growth(options):
    if not importlib.util.find_spec("matplotlib"):  # not imported yet: its memory would count in the peak memory of the programs
        fail("growth needs matplotlib: apt-get install python3-matplotlib")
    sweeps = {sweep: {kind: curve(sweep, kind) for kind in KINDS if curve(sweep, kind)} for sweep in options.sweeps}
    together = (case for kinds in sweeps.values() for size in zip(*kinds.values()) for case in size)
    medians = measure({"braid": [options.train_step]}, list(dict.fromkeys(together)), options)
    curves = {sweep: {kind: [(size_of(sweep, case), medians["braid", case]["ms_per_step"]) for case in cases]
                      for kind, cases in kinds.items()} for sweep, kinds in sweeps.items()}
    for sweep, kinds in curves.items():
        sizes = [size for size, _ in next(iter(kinds.values()))]
        print(table([f"ms by {sweep}", *sizes, "exponent"],
                    [[" ".join(kind), *(f"{ms:.1f}" for _, ms in points), f"{exponent(points):.2f}"] for kind, points in kinds.items()]))
    draw(curves, options.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for run, about in ((beside, "train_step and PyTorch, or another build, alternating"),
                       (connections, "train_step with one connection after another, as multiples of the first"),
                       (hvp, "products with the Hessian and PyTorch's, alternating"), (growth, "train_step over sweeps of one size each")):
        command = commands.add_parser(run.__name__, help=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        command.set_defaults(run=run)
        command.add_argument("--rounds", type=positive, default=3, help="runs per case and program; tables show their median")
        command.add_argument("--steps", type=positive, default=5, help="timed steps per run; a run reports their median")
        command.add_argument("--threads", type=positive, default=2, help="threads of each program")
        command.add_argument("--train-step", default=str(ROOT / "build/bin/train_step"), help="the program")
        if run is not growth:
            sizes = list(SIZES) if run is beside else [128, 384]
            command.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=sizes, help="model sizes, by their channels")
        if run in (beside, connections):
            kinds = ["residual", "mhc"] if run is beside else None
            command.add_argument("--connections", nargs="+", default=kinds, help="connections" + ("" if kinds else "; without, all"))
        if run in (beside, hvp):
            command.add_argument("--python", default=sys.executable, help="an interpreter with torch")
        if run is beside:
            command.add_argument("--other", help="train_step of another build, which takes PyTorch's place")
            command.add_argument("--compile", action="store_true", help="PyTorch's compiled step too")
        elif run is growth:
            command.add_argument("--sweeps", nargs="+", choices=SWEEPS, default=list(SWEEPS), help="which sizes grow")
            command.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/growth.png", help="the picture")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
