#!/usr/bin/python3 -B
"""Runs check_gradients on a small model, also on a terminal, and with flags that it refuses. usage: check_gradients_test.py PROGRAM"""
import os
import pty
import re
import subprocess
import sys

from program import check, check_refused, run

SMALL = ["--layers", "1", "--channels", "8", "--heads", "2", "--context", "3", "--batch", "3", "--vocab", "5"]


if __name__ == "__main__":
    program = sys.argv[1]
    residual, mhc = (["--connection", kind] for kind in ("residual", "mhc"))
    for flags, connected, directions in ((residual, False, 2), (mhc, True, 2), (["--directions", 3, "--layers", 2, "--head", "weighted"], True, 3)):
        result = run(program, *SMALL, *flags)
        check(result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}{result.stderr}")
        check(re.search(rf"^blocks.0.attention.q.weight +{directions} ", result.stdout, re.MULTILINE), result.stdout)
        check("\nall together" in result.stdout, result.stdout)
        check(re.search(r"\d+ derivatives: 0 wrong, \d+ undecidable, 0 at kinks", result.stdout), result.stdout)
        parameters = 12 * 8 * 8 + 7 * 8 + (2 * 5 + 3 + 1) * 8  # of a block, embedding and head, positions and the last norm
        check(result.stdout.startswith(f"{parameters} parameters, 9 tokens\n") != connected, result.stdout)
        check((".connection." in result.stdout) == connected, result.stdout)
    exact = run(program, *SMALL, *residual, "--tolerance", 1e-15).stdout
    check(re.search(r"^(\d+) derivatives: 0 wrong, \1 undecidable,", exact, re.MULTILINE), f"--tolerance finer than rounding: {exact}")
    tables = [run(program, *SMALL, *residual, "--seed", seed).stdout.rpartition(";")[0] for seed in (7, 7, 8)]
    check(tables[0] == tables[1] != tables[2], f"--seed: {tables}")
    # A weight alone has one derivative, up to the random sign of the loss, whatever the directions.
    narrow = [run(program, *SMALL, *residual, "--channels", 1, "--heads", 1, "--seed", seed).stdout for seed in (7, 8)]
    slopes = [re.search(r"^norm.weight +1 +-?(\S+) ", said, re.MULTILINE)[1] for said in narrow]
    check(slopes[0] != slopes[1], f"--seed: weights with the same derivative {slopes}")
    terminal, its = pty.openpty()
    subprocess.run([program, *SMALL, *residual], stdout=its, timeout=300, check=True)
    drawn = b""
    while b" derivatives: " not in drawn:
        drawn += os.read(terminal, 4096)
    check(re.search(rb"\r\x1b\[Kderivative (\d+)/\1 \[#{24}\]  \| 0s left\r\n", drawn), f"no full bar in {drawn}")
    least = 8 * 2**44 * (16 * 8 + 5)  # of f64: 16 numbers of each channel in a block, and the logits
    result = run(program, *SMALL, *residual, "--context", 2**20, "--batch", 2**24)
    check_refused(f"a model and batches of these sizes take at least {least / 1e9:.3g} GB but ", result)
    check_refused("residual", run(program, "--connection", "nothing"))
    check_refused("--layers", run(program, "--layers", "0"))
    check_refused("--heads", run(program, "--heads", "x"))
