"""A short run of train_lm, and readers of its files."""

import json
import struct

TINY = ["--layers", "1", "--channels", "16", "--heads", "2", "--context", "16", "--batch", "4", "--warmup", "5", "--sample", "20"]


def tensors(out):
    """The bytes of all tensors of a run's checkpoint; the header may differ in order or configuration."""
    data = (out / "checkpoint.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return data[8 + length:]


def named_tensors(path):
    """The bytes of each tensor of a file, and its metadata."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    return {name: data[8 + length:][slice(*its["data_offsets"])] for name, its in header.items()}, metadata


def shaped_tensors(path):
    """The f32 tensors of a file, vectors as lists of numbers and matrices as lists of rows."""
    data, tensors = path.read_bytes(), {}
    (length,) = struct.unpack("<Q", data[:8])
    for name, its in json.loads(data[8:8 + length]).items():
        if its.get("dtype") == "F32":
            flat, width = memoryview(data[8 + length:][slice(*its["data_offsets"])]).cast("f").tolist(), its["shape"][-1]
            tensors[name] = flat if len(its["shape"]) == 1 else [flat[at:at + width] for at in range(0, len(flat), width)]
    return tensors


def losses(out):
    """The losses of all steps; --init writes a line before the first."""
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [line["train_loss"] for line in lines if line["step"] > 0]
