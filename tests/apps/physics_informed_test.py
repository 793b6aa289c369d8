#!/usr/bin/python3 -B
"""The physics-informed network finds the solution of its equation. usage: physics_informed_test.py PROGRAM"""
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
        error = re.search(r"\nlargest error of u: (\S+), of u'': \S+\n", result.stdout)
        check(error and float(error[1]) < 1e-4, f"not solved:\n{result.stdout}")
        picture = folder / "picture.png"
        drawn = run(ROOT / "apps/plots/physics_informed.py", folder / "solution.npz", picture)
        check(drawn.returncode == 0 and picture.read_bytes().startswith(b"\x89PNG"), f"no picture: {drawn.stderr}")
