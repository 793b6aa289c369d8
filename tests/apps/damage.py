#!/usr/bin/python3 -B
"""Flips bits of a checkpoint of train_lm, or truncates it, and resumes the run.

Each must be refused with exit code 2 and one line, or end in the bits of a run that nobody touched. Anything else is a
failure: a crash, a wrong result, a folder that a refused run has changed. Prints a line of counts; exits with 1 on failures.
"""
import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile

from attack import Progress, command, difference, program_copy
from program import run, write_text

EVERY = ["--checkpoint-every", "10", "--eval-every", "10"]  # also where a run of 20 steps ends


def flip(data, chance):
    """A position to damage, in the header (length, names, shapes, settings) one time in four, since it has few of the bytes."""
    header = 8 + int.from_bytes(data[:8], "little")
    bit = chance.randrange(8 * header) if chance.random() < 0.25 else chance.randrange(8 * header, 8 * len(data))
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged), f"bit {bit} flipped, {'in the header' if bit < 8 * header else 'in the data'}"


def truncate(data, chance):
    size = chance.randrange(len(data))
    return data[:size], f"cut to {size} bytes"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


class Damage:
    def __init__(self, program, folder):
        self.folder, self.broken, self.whole = folder, folder / "broken", folder / "whole"
        self.line = lambda out, steps, *more: command(program, folder, out, "mhc", steps, *EVERY, *more)
        for out, steps, more in ((self.whole, 20, []), (self.whole, 30, ["--resume"]), (folder / "half", 20, [])):
            result = run(*self.line(out, steps, *more))
            if result.returncode != 0:
                sys.exit(f"damage: the undamaged run failed: {result.stderr}")

    def attempt(self, data):
        """The outcome of a run whose checkpoint was replaced by `data`; failures start with a capital letter."""
        shutil.rmtree(self.broken, ignore_errors=True)
        shutil.copytree(self.folder / "half", self.broken)
        (self.broken / "checkpoint.safetensors").write_bytes(data)
        before = contents(self.broken)
        result = run(*self.line(self.broken, 30, "--resume"))
        if result.returncode == 2:
            if result.stderr.count("\n") != 1:
                return "Refused, not in one line"
            return "refused" if contents(self.broken) == before else "Refused, but the folder has changed"
        if result.returncode != 0:
            return f"Crashed with {result.returncode}"
        return "Accepted with a wrong result" if difference(self.whole, self.broken) else "same bits at the end"


def attack(damage, way, count, chance):
    """Prints failures and counts; returns the number of failures."""
    data = (damage.folder / "half" / "checkpoint.safetensors").read_bytes()
    outcomes, progress = collections.Counter(), Progress(way.__name__, count)
    for k in range(count):
        damaged, what = way(data, chance)
        outcome = damage.attempt(damaged)
        outcomes[outcome] += 1
        if outcome[0].isupper():
            print(f"{what}: {outcome}", file=sys.stderr)
        progress.update(k + 1)
    print(f"{way.__name__}: {count} times; " + ", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common()))
    return sum(n for outcome, n in outcomes.items() if outcome[0].isupper())


def main():
    parser = argparse.ArgumentParser(prog="damage", description=__doc__)
    parser.add_argument("program", help="train_lm")
    parser.add_argument("--count", type=int, default=200, help="flipped bits, and as many truncations")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_text(folder)
        damage = Damage(program_copy(arguments.program, folder), folder)
        failures = sum([attack(damage, way, arguments.count, chance) for way in (flip, truncate)])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
