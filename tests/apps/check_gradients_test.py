#!/usr/bin/python3 -B
"""Runs check_gradients on a small model, and with flags that it refuses. usage: check_gradients_test.py PROGRAM"""
import re
import sys

from program import check, check_refused, run

SMALL = ["--layers", "1", "--channels", "8", "--heads", "2", "--context", "3"]

if __name__ == "__main__":
    program = sys.argv[1]
    for connection in ("residual", "mhc"):
        result = run(program, *SMALL, "--connection", connection)
        check(result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}{result.stderr}")
        check("\nblocks.0.attention.q.weight" in result.stdout and "\nall together" in result.stdout, result.stdout)
        check(re.search(r"\d+ derivatives: 0 wrong, \d+ undecidable, 0 at kinks", result.stdout), result.stdout)
    check_refused("residual", run(program, "--connection", "nothing"))
    check_refused("--layers", run(program, "--layers", "0"))
    check_refused("--heads", run(program, "--heads", "x"))
