#!/usr/bin/python3 -B
"""Runs compare_connections as a user would: compare_connections_test.py PROGRAM"""
import json
import pathlib
import sys
import tempfile

from program import check, check_refused, run, write_text

NAMES = ["residual", "hc", "mhc", "manifold", "mhc-layer", "skip", "deepseek-v4", "hunyuan-v4", "gated", "single-pass",
         "attention-residual", "frac", "layer-scale", "rezero", "laurel"]


def main(program, folder):
    text, out = write_text(folder), folder / "out"
    flags = ["--text", text, "--steps", 9, "--evaluations", 4, "--out", out]
    result = run(program, *flags)
    check(result.returncode == 0, result.stderr)
    table = [line.split() for line in result.stdout.splitlines() if line.split()[:1] and line.split()[0] in NAMES]
    check([row[0] for row in table] == NAMES and table[0][4] == "1.00", f"the table is\n{result.stdout}")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    check([(line["connection"], line["step"]) for line in lines] == [(name, s) for s in range(1, 10) for name in NAMES], "metrics.jsonl")
    check([line["step"] for line in lines if "val_loss" in line and line["connection"] == "mhc"] == [2, 4, 6, 8, 9], "evaluations")
    first = {line["connection"]: line["train_loss"] for line in lines[:len(NAMES)]}
    for name in ("hc", "mhc", "skip", "frac", "laurel"):
        check(abs(first[name] - first["residual"]) < 1e-3, f"{name} starts at {first[name]}, residual at {first['residual']}")
    saved = json.loads((out / "results.json").read_text())
    results = saved["results"]
    check((saved["steps"], saved["seed"]) == (9, 1) and results[0]["held_out_loss"] < first["residual"], f"{saved}")
    check([r["held_out_loss"] for r in results] == [line["val_loss"] for line in lines[-len(NAMES):]], "results.json has other losses")
    check((out / "loss.png").read_bytes().startswith(b"\x89PNG") and f"picture: {out}/loss.png\n" in result.stdout, "loss.png is no picture")

    some = ["--text", text, "--steps", 2, "--evaluations", 1, "--out", folder / "some"]
    check(run(program, *some, "--connections", "mhc,residual", "--mixings", "quaternion,sinkhorn").returncode == 0, "mixings")
    results = json.loads((folder / "some/results.json").read_text())["results"]
    check([r["connection"] for r in results] == ["mhc+quaternion", "mhc+sinkhorn", "residual"], "results.json has other entries")
    check([len(values) for values in results[0]["by_depth"].values()] == [8, 8, 8], "results.json has other depths")

    sizes = ["--layers", 2, "--channels", 16, "--heads", 2, "--context", 8, "--batch", 3, "--connections", "residual", "--threads", 3]
    check(run(program, "--text", text, "--steps", 3, "--evaluations", 4, "--out", folder / "sizes", *sizes).returncode == 0, "sizes")
    lines = [json.loads(line) for line in (folder / "sizes/metrics.jsonl").read_text().splitlines()]
    check(all("val_loss" in line for line in lines) and len(lines) == 3, f"more evaluations than steps: {lines}")
    saved = json.loads((folder / "sizes/results.json").read_text())
    result = saved["results"][0]
    check(saved["machine"]["threads"] == 3, f"{saved['machine']}")
    characters = len(set(text.read_text()))
    check(result["parameters"] == 2 * (12 * 16 * 16 + 7 * 16) + (2 * characters + 8 + 1) * 16, f"{result} for {characters} characters")
    check(len(result["by_depth"]["forward_gain"]) == 4, "other layers than --layers 2")

    new = ["--out", folder / "new"]
    check_refused("holds results", run(program, *flags))
    check_refused("--steps", run(program, "--steps", 0, *new))
    check_refused("--heads: 5 heads do not divide 48 channels", run(program, "--heads", 5, *new))
    check_refused("some of residual, hc, ", run(program, "--connections", "residual,none", *new))
    check_refused("some of sinkhorn, ", run(program, "--mixings", "quaternion", "--streams", 8, *new))
    check_refused("which --connections does not name", run(program, "--connections", "hc", "--mixings", "all", *new))
    check_refused("--alpha: has no effect with connection residual, hc", run(program, "--connections", "residual,hc", "--alpha", 1, *new))
    check_refused("name must be one of sinkhorn, ", run(program, "--mixing", "none", *new))
    check_refused("none.txt is not a file", run(program, "--text", folder / "none.txt", *new))
    check_refused("one of simplex, identity, doubly_stochastic but is 'ball'", run(program, "--skip-constraint", "ball", *new))
    check(not (folder / "new").exists(), "a folder was made for a run that was refused")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(sys.argv[1], pathlib.Path(name))
