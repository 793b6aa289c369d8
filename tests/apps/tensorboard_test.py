#!/usr/bin/python3 -B
"""TensorBoard, where it is installed, reads what train_lm --tensorboard writes, also after a kill: tensorboard_test.py PROGRAM"""
import json
import pathlib
import re
import struct
import sys
import tempfile

from program import check, run, write_text
from tiny_run import TINY

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    EventAccumulator = None


def parsed(data):
    """The same by the format: records of a length and its checksum, time and step in 11 bytes, tags and values, and a checksum."""
    seen = {}
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event, data = data[12:12 + length], data[16 + length:]
        for tag, value in re.findall(rb"\x0a.([a-z_/]+)\x15(.{4})", event[11:], re.DOTALL):
            check(event[9] == 0x10 and event[10] < 128, f"no step: {event}")
            seen.setdefault(tag.decode(), []).append((event[10], *struct.unpack("<f", value)))
    return seen


def read(out):
    """{tag: [(step, value), ..]} of a run's folder, as TensorBoard sees it."""
    if EventAccumulator is None:
        return parsed((out / "events.out.tfevents.braid").read_bytes())
    events = EventAccumulator(str(out), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def main(program, folder):
    text = write_text(folder)
    flags = ["--text", text, *TINY, "--eval-every", 10, "--telemetry-every", 15, "--connection", "mhc", "--tensorboard", "--lr", 3e-3,
             "--min-lr", 3e-3]
    whole, broken = folder / "whole", folder / "broken"
    check(run(program, *flags, "--steps", 60, "--out", whole).returncode == 0, "the run failed")
    seen = read(whole)
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]

    def same(tag, expected):
        check([step for step, _ in seen[tag]] == [step for step, _ in expected], f"{tag}: steps {seen[tag]}")
        for (step, value), (_, wanted) in zip(seen[tag], expected):
            check(abs(value - wanted) <= 1e-6 * abs(wanted), f"{tag} at step {step} is {value} and not {wanted}")

    same("loss/train", [(line["step"], line["train_loss"]) for line in lines])
    same("loss/held_out", [(line["step"], line["val_loss"]) for line in lines if "val_loss" in line])
    same("gradient_norm", [(line["step"], line["grad_norm"]) for line in lines])
    same("learning_rate", [(step, 3e-3 * min(1, step / 5)) for step in range(1, 61)])
    check([step for step, _ in seen["tokens_per_s"]] == list(range(1, 61)), "tokens_per_s")
    stats = [json.loads(line) for line in (whole / "telemetry.jsonl").read_text().splitlines()]
    same("gain/forward", [(line["step"], line["composed_forward_gain"]) for line in stats if line["connection"] == 1])
    same("gain/backward", [(line["step"], line["composed_backward_gain"]) for line in stats if line["connection"] == 0])

    check(run(program, *flags, "--steps", 40, "--checkpoint-every", 20, "--out", broken).returncode == 0, "the run failed")
    (broken / "checkpoint.safetensors").write_bytes(b"")  # go on from step 20
    events = broken / "events.out.tfevents.braid"
    events.write_bytes(events.read_bytes()[:-7])
    result = run(program, *flags, "--steps", 60, "--out", broken, "--resume")
    check(result.returncode == 0 and "resumed at step 20" in result.stdout, f"{result.stdout} {result.stderr}")
    again = read(broken)
    check({tag: values for tag, values in again.items() if tag != "tokens_per_s"} ==
          {tag: values for tag, values in seen.items() if tag != "tokens_per_s"}, "a resumed run shows other numbers")
    check([step for step, _ in again["tokens_per_s"]] == list(range(1, 61)), "steps are missing or there twice")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(sys.argv[1], pathlib.Path(name))
