#!/usr/bin/python3
"""Runs train_lm as a user would: train_lm_test.py PROGRAM {outputs|bad-input|kill}"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

TINY = ["--layers", "1", "--channels", "16", "--heads", "2", "--context", "16", "--batch", "4", "--warmup", "5", "--sample", "20"]


def write_text(folder):
    """About 12,000 characters that a small model can learn."""
    words = "the quick brown fox jumps over the lazy dog while seven wizards brew potions".split()
    text = folder / "text.txt"
    text.write_text(" ".join(random.Random(1).choice(words) for _ in range(2000)))
    return text


def run(program, *flags):
    return subprocess.run([program, *map(str, flags)], capture_output=True, text=True, timeout=120)


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def outputs(program, folder):
    text, out = write_text(folder), folder / "run"
    result = run(program, "--text", text, *TINY, "--steps", 120, "--eval-every", 40, "--out", out)
    check(result.returncode == 0, result.stderr)
    check("\r" not in result.stdout, "a bar is drawn although this is no terminal")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    check([line["step"] for line in lines] == list(range(1, 121)), "metrics.jsonl must have one line a step")
    check(set(lines[0]) == {"step", "train_loss", "grad_norm", "tokens_per_s"}, f"keys {set(lines[0])}")
    check([line["step"] for line in lines if "val_loss" in line] == [40, 80, 120], "val_loss where evaluated")
    check(lines[-1]["val_loss"] < 0.8 * lines[0]["train_loss"], "the loss must fall")
    config = json.loads((out / "config.json").read_text())
    check({"git_commit", "machine", "steps", "seed"} <= set(config), f"config.json has {set(config)}")
    check((out / "loss.png").read_bytes().startswith(b"\x89PNG"), "loss.png is no picture")
    check(not [p for p in out.iterdir() if "tmp" in p.name], "a temporary file is left")
    again = run(program, "--text", text, *TINY, "--steps", 120, "--out", folder / "again", "--threads", 1)
    check(again.returncode == 0, again.stderr)
    check(tensors(out) == tensors(folder / "again"), "another number of threads changed the parameters")


def tensors(out):
    """The bytes of all tensors of a run's checkpoint; the header may differ in order or configuration."""
    data = (out / "checkpoint.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return data[8 + length:]


def bad_input(program, folder):
    text, out = write_text(folder), folder / "run"
    flags = ["--text", text, *TINY, "--steps", 10, "--out", out]
    check(run(program, *flags).returncode == 0, "the good run failed")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    short = folder / "short.txt"
    short.write_text("too short")
    new = folder / "new"
    cases = {
        "missing file": ["--text", folder / "none.txt", "--out", new],
        "text shorter than a context": ["--text", short, "--out", new],
        "heads": ["--text", text, "--channels", 10, "--heads", 3, "--out", new],
        "unknown flag": ["--colour", "red", "--out", new],
        "not a number": ["--steps", "many", "--out", new],
        "no layers": ["--layers", 0, "--out", new],
        "unknown connection": ["--connection", "hyper", "--out", new],
        "existing run": flags,
        "resume of nothing": ["--text", text, *TINY, "--resume", "--out", new],
        "resume of another run": [*flags, "--resume", "--seed", 7],
    }
    for name, case in cases.items():
        refused(name, run(program, *case))
    checkpoint = out / "checkpoint.safetensors"
    for damaged in (before[checkpoint.name][:-3], before[checkpoint.name][:40], b"", b"\xff" * 64):
        checkpoint.write_bytes(damaged)
        refused("damaged checkpoint", run(program, *flags, "--resume"))
        check(checkpoint.read_bytes() == damaged, "the damaged checkpoint was touched")
    checkpoint.write_bytes(before[checkpoint.name])
    check(before == {p.name: p.read_bytes() for p in out.iterdir()}, "files of the existing run changed")
    check(not new.exists(), "a folder was made for a run that was refused")


def refused(name, result):
    check(result.returncode == 2, f"{name}: exit code {result.returncode}, expected 2\n{result.stderr}")
    check(result.stderr.count("\n") == 1 and result.stderr.startswith("train_lm: "), f"{name}: {result.stderr!r}")


def kill(program, folder, kills=20):
    text = write_text(folder)
    flags = [*TINY, "--steps", "4000", "--eval-every", "500", "--checkpoint-every", "20", "--sample", "0"]
    whole, broken = folder / "whole", folder / "broken"
    check(run(program, "--text", text, *flags, "--out", whole).returncode == 0, "the uninterrupted run failed")
    command = [program, "--text", str(text), *flags, "--out", str(broken)]
    pause = random.Random(2)
    for k in range(kills):
        process = subprocess.Popen(command + (["--resume"] if (broken / "config.json").exists() else []), stdout=subprocess.DEVNULL)
        time.sleep(pause.uniform(0.0, 0.12))
        check(process.poll() is None, f"the run ended before kill {k + 1}")
        process.kill()
        process.wait()
    result = run(*command, *(["--resume"] if (broken / "config.json").exists() else []))
    check(result.returncode == 0, result.stderr)
    check(tensors(whole) == tensors(broken), f"{kills} kills changed the final bits")
    steps = [json.loads(line)["step"] for line in (broken / "metrics.jsonl").read_text().splitlines()]
    check(steps == list(range(1, 4001)), "metrics.jsonl lost or repeated steps")
    print(f"{kills} kills, same bits")


if __name__ == "__main__":
    program, case = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        {"outputs": outputs, "bad-input": bad_input, "kill": kill}[case](program, pathlib.Path(name))
