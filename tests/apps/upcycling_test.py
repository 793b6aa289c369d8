#!/usr/bin/python3 -B
"""Runs apps/upcycling.py at a small size: upcycling_test.py SCRIPT PROGRAM"""
import pathlib
import sys
import tempfile

from program import check, run, write_text
from tiny_run import TINY


def main(script, program, folder):
    text, out = write_text(folder), folder / "out"
    flags = ["--train-lm", program, "--text", text, "--out", out, "--seeds", 1, 2, "--steps", 20, "--more", 10, "--connections",
             "residual", "mhc", "--", *TINY[:8], "--batch", 4, "--warmup", 0, "--eval-every", 5]
    result = run(script, *flags)
    check(result.returncode == 0, f"{result.stdout} {result.stderr}")
    rows = (out / "upcycling.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rows.splitlines()]
    check(rows and result.stdout.endswith(rows), "the table is printed")
    check(lines[0] == ["connection", "at its start", "seed 1", "seed 2", "mean and deviation", "minus residual"], f"{lines[0]}")
    check([line[0] for line in lines[2:]] == ["`residual`", "`mhc`"], rows)
    residual, mhc = lines[2:]
    check(residual[1] == mhc[1], f"mhc must start where residual does: {rows}")
    check(all(float(end) < float(residual[1]) for end in residual[2:4] + mhc[2:4]), f"losses must fall: {rows}")
    check(residual[5] == "0.0000 ± 0.0000", rows)
    check((out / "upcycling.png").read_bytes().startswith(b"\x89PNG"), "upcycling.png is no picture")
    again = run(script, *flags)
    check(again.returncode == 0 and (out / "upcycling.md").read_text() == rows, "the same command again changed the table")
    refused = run(script, *flags, "--color", "red")
    check(refused.returncode == 2 and "train_lm: " in refused.stderr, f"{refused.returncode} {refused.stderr}")


if __name__ == "__main__":
    script, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        main(script, program, pathlib.Path(name))
