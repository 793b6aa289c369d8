#!/usr/bin/python3 -B
"""Kills runs of train_lm at random moments and compares their results with those of undisturbed runs.

Over all connections in turn; a third of the kills each come anywhere in a run, while a checkpoint is being written, and while
a run starts or is resumed. Prints `N kills, M runs, same bits` and exits with 1 when a run ended otherwise.
"""
import collections
import itertools
import random
import shutil
import subprocess
import sys
import time

from attack import CONNECTIONS, Progress, command, difference, killing, program_copy
from program import run

STEPS = 400
EVERY = ["--checkpoint-every", "10", "--eval-every", "100", "--telemetry-every", "50"]


def wait_anywhere(process, out, chance, seconds):
    sleep_while_running(process, chance.uniform(0, seconds / 3))


def wait_for_save(process, out, chance, seconds):
    """Waits for the temporary file of one of the next few saves, and a moment more."""
    end = time.monotonic() + chance.uniform(seconds / 20, seconds / 3)
    while process.poll() is None:
        if time.monotonic() > end and any("tmp" in path.name for path in out.glob("*")):
            return time.sleep(chance.uniform(0, 0.002))


def wait_for_start(process, out, chance, seconds):
    sleep_while_running(process, chance.uniform(0, 0.15))


def sleep_while_running(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass


WAYS = {"anywhere": wait_anywhere, "in a save": wait_for_save, "at the start": wait_for_start}


class Soak:
    def __init__(self, program, folder, kills, seed):
        self.program, self.folder, self.kills = program, folder, kills
        self.chance, self.ways = random.Random(seed), itertools.cycle(WAYS)
        self.done, self.progress = collections.Counter(), Progress("kills", kills)
        self.seconds = {}  # that an unbroken run takes, by connection

    def command(self, out, connection):
        resume = ["--resume"] if (out / "config.json").exists() else []
        return command(self.program, self.folder, out, connection, STEPS, *EVERY, *resume)

    def unbroken_run(self, out, connection):
        start = time.monotonic()
        result = run(*self.command(out, connection))
        if result.returncode != 0:
            sys.exit(f"soak: {connection}: the unbroken run failed: {result.stderr}")
        self.seconds[connection] = time.monotonic() - start

    def broken_run(self, out, connection):
        """Kills one run until it ends by itself or the kills are used up; returns a description of a failure, or an empty string."""
        while True:
            process = subprocess.Popen(self.command(out, connection), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if self.done.total() < self.kills:
                way = next(self.ways)
                WAYS[way](process, out, self.chance, self.seconds[connection])
                if process.poll() is None:
                    process.kill()
                    self.done[way] += 1
                    self.progress.update(self.done.total())
            message = process.communicate()[1]
            if process.returncode >= 0:
                return message if process.returncode != 0 else ""

    def run(self):
        """Returns the number of runs with the right result; exits at the first other one."""
        for count, connection in enumerate(itertools.cycle(CONNECTIONS)):
            if self.done.total() >= self.kills and count >= len(CONNECTIONS):
                return count
            whole, broken = self.folder / f"{connection}-whole", self.folder / f"{connection}-broken-{count}"
            if connection not in self.seconds:
                self.unbroken_run(whole, connection)
            wrong = self.broken_run(broken, connection) or difference(whole, broken)
            if wrong:
                sys.exit(f"soak: {connection}, after {self.done.total()} kills: {wrong} (see {broken})")
            shutil.rmtree(broken)


def main():
    with killing("soak", __doc__, 1000) as asked:
        soak = Soak(program_copy(asked.program, asked.folder), asked.folder, asked.kills, asked.seed)
        runs = soak.run()
    ways = ", ".join(f"{count} {way}" for way, count in soak.done.items())
    print(f"{soak.done.total()} kills ({ways}), {runs} runs over {len(CONNECTIONS)} connections, same bits")


if __name__ == "__main__":
    main()
