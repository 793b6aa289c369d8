#!/usr/bin/python3 -B
"""A program of one's own over ranks: the bits of one process, and one line when a rank fails: over_ranks_test.py PROGRAM"""
import subprocess
import sys

import mpirun


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def main(program):
    alone = subprocess.run([program], capture_output=True, text=True, timeout=60)
    check(alone.returncode == 0 and alone.stdout.count("\n") == 5, f"{alone}")
    for ranks in (2, 3, 4):
        result = mpirun.run("-n", ranks, program)
        check((result.returncode, result.stdout) == (0, alone.stdout), f"{ranks} ranks: {result} {alone.stdout}")
    for expected, ranks in (("dist: 4 blocks are too few for 5 ranks", ["-n", 5, program]),
                            ("rank 1 has another instruction set than rank 0: baseline instead of ",
                             ["-n", 1, program, ":", "-n", 1, "env", "BRAID_ISA=baseline", program])):
        result = mpirun.run(*ranks)
        check(result.returncode == 2 and result.stderr.startswith(f"over_ranks: {expected}") and result.stderr.count("\n") == 1, f"{result}")


if __name__ == "__main__":
    main(sys.argv[1])
