#!/usr/bin/python3 -B
"""A critic with a gradient penalty measures the distance of two clouds, and one without does not. usage: gradient_penalty_test.py PROGRAM"""
import pathlib
import re
import sys
import tempfile

from program import check, run

ROOT = pathlib.Path(__file__).parents[2]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        result = run(sys.argv[1], "--out", folder)
        check(result.returncode == 0, result.stderr)
        found = re.findall(r"distance +(\S+), slopes from \S+ to \S+, (\S+) on average\n", result.stdout)
        (distance, slope), (no_distance, no_slope) = [list(map(float, numbers)) for numbers in found]
        check(abs(slope - 1.075) < 0.02 and abs(distance / slope - 1.5) < 0.1, f"with the penalty:\n{result.stdout}")
        check(no_distance > 100 and no_slope > 100, f"without the penalty:\n{result.stdout}")
        picture = folder / "picture.png"
        drawn = run(ROOT / "apps/plots/gradient_penalty.py", folder / "critics.npz", picture)
        check(drawn.returncode == 0 and picture.read_bytes().startswith(b"\x89PNG"), f"no picture: {drawn.stderr}")
