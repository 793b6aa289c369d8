#!/usr/bin/python3 -B
"""Kills a random rank of train_lm at a random moment, again and again: kills.py PROGRAM [--kills N]

Each time all ranks must be gone within 10 seconds, with one line that says which rank, and nothing else on stderr; before the
ranks are connected, in the first half second, and after the last step is saved, only mpirun could report it, and -q suppresses its
messages. Runs continue with other numbers of ranks and must end with the bits of an undisturbed run. Exits with 1 otherwise.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from attack import Progress, difference, killing  # noqa: E402
from mpirun import children, run, start  # noqa: E402
from train_lm_test import CONNECTIONS, SIZES, without_plots  # noqa: E402

STEPS = 400
SECONDS_UNTIL_GONE = 10


def lives(pid):
    """Whether a process has not ended; its parent may not have noticed."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Kills:
    def __init__(self, program, folder, kills, seed):
        self.program, self.folder, self.kills, self.chance = program, folder, kills, random.Random(seed)
        self.done = self.at_the_ends = self.hung = 0
        self.slowest, self.seconds = 0.0, 3.0  # seconds that a run takes
        self.progress = Progress("kills", kills)

    def flags(self, out, connection):
        resume = ["--resume"] if (out / "config.json").exists() else []
        return [self.program, "--text", self.folder / "text.txt", *SIZES, "--steps", STEPS, "--checkpoint-every", 7, "--eval-every", 50,
                "--connection", connection, *CONNECTIONS[connection], "--threads", 1, "--out", out, *resume]

    def kill_one(self, process, ranks):
        """Returns the rank that was killed, None if the run ended before."""
        try:
            process.wait(self.chance.uniform(0.1, 0.5 + self.seconds / 4))
            return None
        except subprocess.TimeoutExpired:
            pids, which = children(process), self.chance.randrange(ranks)
            if len(pids) < ranks:
                return None
            os.kill(pids[which], signal.SIGKILL)
            return which, pids, time.monotonic()

    def check_end(self, process, which, pids, killed):
        """A description of a failure, or an empty string. mpirun may hang after all ranks have ended: docs/scaling.md."""
        while any(lives(pid) for pid in pids) and time.monotonic() < killed + 60:
            time.sleep(0.01)
        self.slowest = max(self.slowest, time.monotonic() - killed)
        if time.monotonic() - killed > SECONDS_UNTIL_GONE:
            return f"gone after {time.monotonic() - killed:.1f} s"
        hangs = False
        try:
            output, errors = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            hangs = True
            self.hung += 1
            process.kill()
            output, errors = process.communicate()
        if errors == "" and (hangs or output == "" or f"step {STEPS}/{STEPS}" in output):
            self.at_the_ends += not hangs
        elif not re.fullmatch(rf"train_lm: rank {which}\b.* is gone: .*\n", errors):
            return f"rank {which} was killed, but stderr has {errors!r}"
        return ""

    def broken_run(self, out, connection):
        """Kills one run until it ends by itself or the kills are used up; returns a description of a failure, or an empty string."""
        while self.done < self.kills:
            ranks = self.chance.choice((2, 3, 4, 5, 8))
            process = start("-n", ranks, *self.flags(out, connection))
            killed = self.kill_one(process, ranks)
            if killed is None:
                errors = process.communicate(timeout=120)[1]
                return errors
            wrong = self.check_end(process, *killed)
            if wrong:
                return wrong
            self.done += 1
            self.progress.update(self.done)
        return run("-n", 3, *self.flags(out, connection)).stderr

    def run(self):
        runs = 0
        while self.done < self.kills or runs < len(CONNECTIONS):
            connection = list(CONNECTIONS)[runs % len(CONNECTIONS)]
            whole, broken = self.folder / f"{connection}-whole", self.folder / f"{connection}-{runs}"
            if not whole.exists():
                began = time.monotonic()
                result = run("-n", 4, *self.flags(whole, connection))
                if result.returncode != 0:
                    sys.exit(f"kills: the unbroken run failed: {result.stderr}")
                self.seconds = time.monotonic() - began
            wrong = self.broken_run(broken, connection) or difference(whole, broken)
            if wrong:
                sys.exit(f"kills: {connection}, after {self.done} kills: {wrong} (see {broken})")
            runs += 1
        return runs


def main():
    with killing("kills", __doc__, 100) as asked:
        kills = Kills(without_plots(asked.program, asked.folder), asked.folder, asked.kills, asked.seed)
        runs = kills.run()
    print(f"{kills.done} kills of a rank ({kills.at_the_ends} before all had joined or after all had left, {kills.hung} after which mpirun "
          f"hung, without its ranks), {runs} runs, one line each, "
          f"all gone within {kills.slowest:.1f} s, same bits")


if __name__ == "__main__":
    main()
