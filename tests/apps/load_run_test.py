#!/usr/bin/python3 -B
"""load_run continues a prompt as generate does. usage: load_run_test.py LOAD_RUN TRAIN_LM GENERATE"""
import os
import pathlib
import sys
import tempfile

from program import check, check_refused, run
from tiny_run import TINY

RUNS = {"residual": [], "mhc": ["--streams", 3, "--mixing", "permutations"], "hunyuan-v4": []}


def main(program, train_lm, generate, folder):
    for connection, flags in RUNS.items():
        out = folder / connection
        trained = run(train_lm, *TINY, "--steps", 30, "--connection", connection, *flags, "--out", out)
        check(trained.returncode == 0, trained.stderr)
        expected = run(generate, "--run", out / "best.safetensors", "--prompt", "the ", "--greedy", "--tokens", 1).stdout
        result = run(program, out / "best.safetensors", "the ")
        check(result.stdout == f"the {expected}" and result.returncode == 0, f"{connection}: {expected} {result}")
    check_refused("the model has no character '\x7f'", run(program, out / "best.safetensors", "50 \x7f"))
    check_refused("give a checkpoint", run(program, out / "best.safetensors"))
    bare = folder / "bare.safetensors"
    bare.write_bytes((2).to_bytes(8, "little") + b"{}")
    check_refused(f"{bare}: is no checkpoint of train_lm", run(program, bare, "a"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(*map(os.path.abspath, sys.argv[1:]), pathlib.Path(folder))
