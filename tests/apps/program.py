"""Shared by the tests of programs: a text to learn, running, checking."""

import os
import random
import subprocess
import sys


def write_text(folder):
    """About 12,000 characters that a small model can learn."""
    words = "the quick brown fox jumps over the lazy dog while seven wizards brew potions".split()
    text = folder / "text.txt"
    text.write_text(" ".join(random.Random(1).choices(words, k=2000)))
    return text


def without_pictures(folder):
    """The programs that this test starts from now on draw nothing: a picture takes longer than a short run."""
    (folder / "matplotlib.py").write_text("raise SystemExit")
    os.environ["PYTHONPATH"] = str(folder)


def run(program, *flags, **options):
    return subprocess.run([program, *map(str, flags)], capture_output=True, text=True, errors="replace", timeout=300, **options)


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def check_refused(expected, result):
    """Checks for exit code 2 and one line that names the program and contains `expected`."""
    program = result.args[0].rpartition("/")[2]
    check(result.returncode == 2, f"exit code {result.returncode} instead of 2 and '{expected}'\n{result.stderr}")
    check(result.stderr.count("\n") == 1 and result.stderr.startswith(f"{program}: "), f"not one line: {result.stderr!r}")
    check(expected in result.stderr, f"expected '{expected}', got {result.stderr!r}")
