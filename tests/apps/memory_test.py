#!/usr/bin/python3 -B
"""The memory of steps is known before they run: memory_test.py TRAIN_STEP TRAIN_LM"""
import json
import pathlib
import resource
import sys
import tempfile

from program import check, check_refused, run, write_text

# One thread, so that steps hold as many blocks each time.
SIZES = ["--channels", 128, "--layers", 8, "--heads", 4, "--batch", 8, "--steps", 1, "--threads", 1]


def check_plans(train_step):
    for more in (["--connection", "residual"], ["--keep-every", 1], ["--keep-every", 0], ["--layers", 2], ["--hvp", "--layers", 4]):
        said = run(train_step, *SIZES, "--context", 128, *more, "--plan")
        check(said.returncode == 0 and said.stdout.count("\n") == 1, f"{more}: {said.stdout}{said.stderr}")
        plan, step = json.loads(said.stdout), json.loads(run(train_step, *SIZES, "--context", 128, *more).stdout)
        check(set(plan) == {"connection", "keep_every", "planned_rss_mb"}, f"{more}: {plan}")
        check(all(plan[key] == step[key] for key in ("connection", "keep_every")), f"{more}: {plan} but {step}")
        ratio = plan["planned_rss_mb"] / step["peak_rss_mb"]
        check(0.97 < ratio < 1.03, f"{more}: {plan} but {step}")


def check_refusals(train_lm):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_text(folder)
        sizes = [*SIZES, "--layers", 12, "--batch", 16, "--context", 128, "--connection", "mhc"]
        refused = run(train_lm, "--text", folder / "text.txt", *sizes, "--out", folder / "refused",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)))
        check_refused("steps of these sizes take 0.", refused)
        check("free; try --keep-every 4 (0." in refused.stderr, refused.stderr)
        check(not (folder / "refused").exists(), "a refused run has a folder")


if __name__ == "__main__":
    check_plans(sys.argv[1])
    check_refusals(sys.argv[2])
