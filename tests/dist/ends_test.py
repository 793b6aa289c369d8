#!/usr/bin/python3 -B
"""Ranks end together, with one line that names the rank and the reason: ends_test.py PROGRAM {ends|stopped|beside}"""

import os
import pathlib
import re
import signal
import sys
import time

from mpirun import children, run, start


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
    (2, "unwinds", [1], 2, ["ends: rank 1: ended by an exception\n"]),
    (2, "throws", [1], 2, ["ends: rank 1: on its way\n"]),
]


def ends(program):
    """When one rank ends, for whatever reason, all end."""
    result = run("-n", 3, program, "none")
    check((result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result)
    for ranks, way, which, code, parts in CASES:
        result = run("-n", ranks, program, way, *which, timeout=60)
        lines = [line for line in result.stderr.splitlines(keepends=True) if line.startswith("ends: ")]
        check(len(lines) == 1, f"{way} {which}: {result.stderr}")
        check(all(part in lines[0] for part in parts), f"{way} {which}: {result.stderr}")
        check(way == "crashes" or lines[0] == result.stderr, f"{way} {which}: {result.stderr}")
        check(code is None or result.returncode in (code, 2 if code > 128 else code), f"{way} {which}: exit code {result.returncode}")


def working(program, ranks):
    process = start("-n", ranks, program, "works")
    check(process.stdout.readline() == "working\n", "does not work")
    return process, children(process)


def check_gone(pids):
    end = time.monotonic() + 30
    while left := [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]:
        check(time.monotonic() < end, f"processes {left} are left")
        time.sleep(0.05)


def stopped(program):
    """A process that was stopped ends all, itself too; one that is slow does not, and neither does a pause of all."""
    for ranks, which in ((2, 1), (3, 1), (2, 0), (3, 0), (4, 3)):
        process, pids = working(program, ranks)
        os.kill(pids[which], signal.SIGSTOP)
        errors = process.communicate(timeout=60)[1]
        who = rf"rank {which} \(process {pids[which]} on .*\)" if which else "rank 0"
        check(re.fullmatch(rf"ends: {who} has not answered for 2 s: it was stopped or hangs\n", errors), f"{which} of {ranks}: {errors}")
        check(process.returncode == 2, f"{which} of {ranks}: exit code {process.returncode}")
        check_gone(pids)
    late = ["sh", "-c", 'sleep 3; exec "$0" "$@"', program, "busy"]  # their patience of 2 s begins when all have started
    result = run("-n", 2, program, "busy", ":", "-n", 1, *late, timeout=60)
    check((result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), f"{result}")
    process, pids = working(program, 3)
    for how in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            os.kill(pid, how)
        time.sleep(4)
    check(process.poll() is None, "did not go on after a pause of all")
    os.kill(pids[2], signal.SIGKILL)
    errors = process.communicate(timeout=60)[1]
    check(errors.startswith("ends: rank 2") and errors.endswith(GONE), errors)


def beside(program):
    """Beside a program without MPI, whose ranks do not answer, all end with a line."""
    start = time.monotonic()
    result = run("-n", 2, program, "none", ":", "-n", 1, "sleep", 1000)
    check(time.monotonic() - start >= 60, "ended too early")
    line = "ends: not all ranks have started within 60 s: one hangs, was stopped or is another program\n"
    check((result.returncode, result.stderr) == (2, line), f"{result}")


if __name__ == "__main__":
    program, case = sys.argv[1:]
    {"ends": ends, "stopped": stopped, "beside": beside}[case](program)
