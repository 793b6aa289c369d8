#!/usr/bin/python3 -B
"""When one rank ends, for whatever reason, all end within seconds, with one line that names the rank and the reason: ends_test.py PROGRAM"""

import sys
import time

from mpirun import run


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


GONE = " is gone: its process was killed or crashed\n"
CASES = [  # ranks, how they end, which of them, exit code, the line
    (4, "killed", [2], 137, ["ends: rank 2 (process ", GONE]),
    (4, "killed", [0], 137, ["ends: rank 0", GONE]),
    (3, "killed", [1, 2], 137, ["ends: rank ", GONE]),
    (2, "exits", [1], None, ["ends: rank 1 (process ", GONE]),
    (3, "crashes", [1], 134, ["ends: rank 1 (process ", GONE]),
    (4, "fails", [3], 3, ["ends: rank 3: step 7: the loss is not finite\n"]),
    (4, "fails", [0], 3, ["ends: step 7: the loss is not finite\n"]),
    (4, "fails", [0, 1, 2, 3], 3, [": step 7: the loss is not finite\n"]),
    (3, "no-memory", [1, 2], 2, ["ends: rank ", "std::bad_alloc\n"]),
    (2, "throws", [1], 2, ["ends: rank 1: on its way\n"]),
]


def main(program):
    result = run("-n", 3, program, "none")
    check((result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result)
    for ranks, way, which, code, parts in CASES:
        start = time.monotonic()
        result = run("-n", ranks, program, way, *which, timeout=60)
        seconds = time.monotonic() - start
        lines = [line for line in result.stderr.splitlines(keepends=True) if line.startswith("ends: ")]
        check(len(lines) == 1, f"{way} {which}: {result.stderr}")
        check(all(part in lines[0] for part in parts), f"{way} {which}: {result.stderr}")
        check(way == "crashes" or lines[0] == result.stderr, f"{way} {which}: {result.stderr}")
        check(code is None or result.returncode in (code, 2 if code > 128 else code), f"{way} {which}: exit code {result.returncode}")
        check(seconds < 10, f"{way} {which}: after {seconds:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
