"""Shared by the scripts that kill or damage train_lm: small runs of all connections, comparing their results, progress."""

import argparse
import contextlib
import json
import pathlib
import shutil
import sys
import tempfile
import time

from program import write_text
from tiny_run import tensors

CONNECTIONS = ("residual", "hc", "mhc", "manifold", "mhc-layer", "skip", "deepseek-v4", "hunyuan-v4", "gated", "single-pass", "attention-residual", "frac",
               "layer-scale", "rezero", "laurel")

# The learning rate is constant so that a run may be made longer.
TINY = ["--layers", "1", "--channels", "16", "--heads", "2", "--context", "16", "--batch", "4", "--warmup", "0", "--sample", "0",
        "--lr", "5e-3", "--min-lr", "5e-3", "--threads", "1"]


def command(program, folder, out, connection, steps, *more):
    return [str(program), "--text", str(folder / "text.txt"), *TINY, "--connection", connection, "--steps", str(steps), *more,
            "--out", str(out)]


def metrics(out):
    """All lines of metrics.jsonl without the speed, which differs between runs."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "tokens_per_s"} for line in lines]


def difference(whole, broken):
    """Describes the first difference between the results of two runs; empty if there is none."""
    if tensors(whole) != tensors(broken):
        return "the checkpoints differ"
    if metrics(whole) != metrics(broken):
        return "metrics.jsonl differs"
    extra = {p.name for p in broken.iterdir()} ^ {p.name for p in whole.iterdir()}
    return f"files are left or missing: {', '.join(sorted(extra))}" if extra else ""


class Progress:
    """Prints a line every few seconds: number done and total, rate, time left."""

    def __init__(self, what, total):
        self.what, self.total, self.start, self.told = what, total, time.monotonic(), 0.0

    def update(self, done):
        elapsed = time.monotonic() - self.start
        if elapsed - self.told < 5 or done == 0:
            return
        self.told = elapsed
        left = elapsed / done * (self.total - done)
        print(f"{done}/{self.total} {self.what}, {done / elapsed:.1f}/s, {left:.0f} s left", file=sys.stderr, flush=True)


def program_copy(name, folder):
    """A copy of a program, which builds do not overwrite; without plot scripts next to it, which take longer than its runs."""
    program = pathlib.Path(name)
    if not program.is_file():
        sys.exit(f"{name} is no program")
    return shutil.copy2(program, folder / program.name)


@contextlib.contextmanager
def killing(name, doc, kills):
    """The options of a script that kills runs, with `folder` for their results, which contains a text to learn."""
    parser = argparse.ArgumentParser(prog=name, description=doc)
    parser.add_argument("program", help="train_lm")
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="a folder for the runs, which keeps the one that failed (default: a temporary one)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        arguments.folder = pathlib.Path(arguments.out or temporary)
        arguments.folder.mkdir(parents=True, exist_ok=True)
        write_text(arguments.folder)
        yield arguments
