#!/usr/bin/python3 -B
"""Every flag of train_lm arrives: train_lm_flags_test.py PROGRAM

Two short runs that differ in one flag alone end in different weights, or in the same for a flag that must not matter, and
--resume refuses it unless it may change. --init takes those of connections from the run. A flag of --help that stands in no
table below fails the test.
"""
import json
import math
import pathlib
import re
import sys
import tempfile

from program import check, check_refused, run, without_pictures, write_text
from tiny_run import named_tensors

BASE = {"--layers": 2, "--channels": 16, "--heads": 2, "--context": 16, "--batch": 4, "--warmup": 1, "--sample": 0, "--steps": 4,
        "--threads": 1, "--lr": 3e-3}
MHC, HC, SKIP = {"--connection": "mhc"}, {"--connection": "hc"}, {"--connection": "skip"}
FRAC = {"--connection": "frac"}
IDENTITY = {**SKIP, "--skip-constraint": "identity"}

# Flags that change the weights: another value, the other flags of both runs.
TRAINING = {
    "--connection": ("mhc", {}), "--streams": (3, MHC), "--sinkhorn-iterations": (2, MHC), "--mixing": ("rows", MHC),
    "--phi-std": (0.3, MHC), "--alpha": (0.5, MHC), "--head": ("sum", MHC), "--stream-embedding": (None, MHC),
    "--hc-static": (None, HC), "--skip-mode": ("residual", SKIP), "--skip-constraint": ("doubly_stochastic", SKIP),
    "--skip-init": ("uniform", SKIP), "--skip-projection": ("none", SKIP), "--skip-epsilon": (0.4, IDENTITY),
    "--skip-temperature": (2, SKIP), "--max-history": (2, {**SKIP, "--skip-init": "uniform"}),
    "--depth-block": (2, {"--connection": "attention-residual"}), "--fractions": (2, FRAC), "--proposals": (2, FRAC), "--constrained": (None, FRAC),
    "--scale-init": (0.3, {"--connection": "layer-scale"}), "--laurel-rank": (2, {"--connection": "laurel"}),
    "--detach-history": (None, {**SKIP, "--skip-init": "uniform"}), "--dtype": ("bf16", {}), "--layers": (1, {}),
    "--channels": (8, {}), "--heads": (1, {}), "--context": (8, {}), "--batch": (3, {}), "--warmup": (3, {}), "--lr": (1e-3, {}),
    "--experts": (3, {}), "--experts-per-token": (1, {"--experts": 3}), "--lora": (2, {}), "--value-residual": (None, {}),
    "--optimizer": ("muon", {}),
    "--min-lr": (2e-3, {}), "--weight-decay": (1, {}), "--clip": (0.01, {}), "--seed": (2, {}),
}
# Those of them that say how maps start, which --init brings along trained: a third value.
OF_THE_START = {"--alpha": 0.25, "--phi-std": 0.25, "--scale-init": 0.25, "--skip-init": "zeros"}
# Those that do not, and may change when a run is resumed.
FREE = {"--keep-every": 3, "--threads": 2, "--patience": 7, "--eval-every": 2, "--checkpoint-every": 2, "--telemetry-every": 1, "--check-gradients": 3, "--ledger": None,
        "--tensorboard": None, "--report": None, "--sample": 5, "--on-nonfinite": "skip", "--allow-nonfinite": None, "--allow-other-processor": None}
# Those that need more than another value: tested elsewhere.
ELSEWHERE = {"--help", "--version", "--text", "--tokenizer", "--init", "--train", "--out", "--resume", "--steps", "--blocks", "--matmul-precision",
             "--bits"}


def flags(settings):
    return [part for name, value in settings.items() for part in ([name] if value is None else [name, value])]


def train(program, folder, name, settings, *more):
    return run(program, "--text", folder / "text.txt", *flags(settings), *more, "--out", folder / name)


def weights(folder, name):
    tensors, _ = named_tensors(folder / name / "checkpoint.safetensors")
    return {key: value for key, value in tensors.items() if not key.startswith(("rng", "step"))}


def learning_rates(settings, steps):
    """A linear warm-up to lr at its last step, then a cosine from lr towards min-lr, which the step after the last would have."""
    warmup, lr, least = settings["--warmup"], settings["--lr"], settings.get("--min-lr", 1e-4)
    for step in range(steps):
        done = (step - warmup) / (steps - warmup)
        yield lr * (step + 1) / warmup if step < warmup else least + (lr - least) * (1 + math.cos(math.pi * done)) / 2


def check_learning_rates(folder, name, settings):
    lines = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
    for line, rate in zip(lines, learning_rates(settings, settings["--steps"]), strict=True):
        check(abs(line["learning_rate"] - rate) < 1e-9, f"{name}: step {line['step']} has the rate {line['learning_rate']}, not {rate}")


def main(program):
    said = set(re.findall(r"^ {2,12}(?:-\w, *)?(--[a-z-]+)", run(program, "--help").stdout, re.MULTILINE))
    check(said == set(TRAINING) | set(FREE) | ELSEWHERE, f"tables and --help differ in {said ^ (set(TRAINING) | set(FREE) | ELSEWHERE)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        without_pictures(folder)
        write_text(folder)
        bases = {}
        for flag, (value, others) in TRAINING.items():
            settings = {**BASE, **others}
            name = bases.setdefault(json.dumps(others), f"base{len(bases)}")
            if not (folder / name).exists():
                check(train(program, folder, name, settings).returncode == 0, f"{others} failed")
                check_learning_rates(folder, name, settings)
            changed = {**settings, flag: value}
            result = train(program, folder, flag, changed)
            check(result.returncode == 0, f"{flag} {value}: {result.stderr}")
            check(weights(folder, name) != weights(folder, flag), f"{flag} {value} has no effect")
            check_learning_rates(folder, flag, changed)
            said = json.loads((folder / flag / "config.json").read_text())
            check(said[flag[2:].replace("-", "_")] == (True if value is None else value), f"{flag} {value} is not in config.json")
            if flag == "--warmup":  # may change
                continue
            refused = train(program, folder, name, {**changed, "--steps": 6}, "--resume")
            check(refused.returncode == 2 and "--resume: the run was started with" in refused.stderr,
                  f"--resume with {flag} {value}: {refused.stderr}")
        for flag, (value, others) in TRAINING.items():
            if "--connection" not in others:
                continue
            for connection in ("residual", "rezero"):
                refused = train(program, folder, "unused", {**BASE, flag: value, "--connection": connection})
                check_refused(f"{flag}: has no effect with connection {connection}", refused)
        for flag, (value, others) in TRAINING.items():
            if "--connection" not in (flag, *others):
                continue
            start = {"--init": folder / flag, "--steps": 0, "--sample": 0}
            for more in [{}, {name: kind for name, kind in others.items() if name == "--connection"}][:1 + (flag in OF_THE_START)]:
                name = f"{flag}-of-init-{len(more)}"
                result = train(program, folder, name, {**start, **more})
                check(result.returncode == 0, f"--init of a run with {flag} {value}: {result.stderr}")
                said = json.loads((folder / name / "config.json").read_text())[flag[2:].replace("-", "_")]
                check(said == (True if value is None else value), f"--init of a run with {flag} {value} has {said}, {more}")
            if flag in OF_THE_START:
                check_refused(f"{flag}: has no effect, since --init brings trained maps, which started with {value}",
                              train(program, folder, "unused", {**start, flag: OF_THE_START[flag]}))
        result = train(program, folder, "usual", {**BASE, "--streams": 4, "--mixing": "sinkhorn", "--alpha": "1e-2"})
        check(result.returncode == 0, f"flags at their defaults: {result.stderr}")
        result = train(program, folder, "twentieth", {flag: value for flag, value in BASE.items() if flag != "--warmup"}, "--steps", 41)
        check('"warmup":2,' in result.stdout, f"--warmup is a twentieth of --steps unless given: {result.stdout}")
        for flag, value in FREE.items():
            others = MHC if flag == "--keep-every" else {}
            changed = {**BASE, **others, flag: value}
            result = train(program, folder, flag, changed)
            said = json.loads((folder / flag / "config.json").read_text())
            check(said.get(flag[2:].replace("-", "_"), value) == value, f"{flag} {value} is not in config.json: {said}")
            check(said["machine"]["threads"] == changed["--threads"], f"{flag} {value}: {said}")
            check(result.returncode == 0 and weights(folder, bases[json.dumps(others)]) == weights(folder, flag), f"{flag} {value} must not matter: {result.stderr}")
            check(train(program, folder, flag, {**BASE, **others, "--steps": 5}, "--resume").returncode == 0, f"--resume without {flag} is refused")


if __name__ == "__main__":
    main(sys.argv[1])
