#!/usr/bin/python3 -B
"""Writes a page with the curves, telemetry, samples and settings of runs, for any browser, all in one file."""
import argparse
import html
import json
import math
import os
import pathlib
import re
import secrets
import statistics
import sys
import time

from stability_data import TASKS, Results

POINTS, CELLS, SAMPLES, LETTERS = 1000, 6000, 20, 4000  # the most of each that a run puts on the page
CURVES = {"loss": "train_loss", "grad_norm": "grad_norm", "learning_rate": "learning_rate", "speed": "tokens_per_s"}
STATS = ("forward_gain", "backward_gain", "composed_forward_gain", "composed_backward_gain", "row_error", "column_error", "similarity",
         "saturation")
PARTS = pathlib.Path(__file__).resolve().parent


def number(value):
    """The value if it is a finite number, else None."""
    try:
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) else None
    except OverflowError:
        return None


def parse(line):
    """The JSON object of a line, or None."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_lines(path, notes):
    """The objects of a file that have a step. Ignores an incomplete last line; notes other bad lines."""
    if not path.is_file():
        return []
    *whole, _ = path.read_text(errors="replace").split("\n")
    lines = [line for line in map(parse, whole) if line and type(line.get("step")) is int and 0 <= line["step"] < 2**53]
    if bad := len(whole) - len(lines):
        notes.append(f"{path.name}: {bad} line{'s' * (bad > 1)} could not be read")
    return lines


def by_step(lines):
    return [line for _, line in sorted({line["step"]: line for line in lines}.items())]


def evenly(items, most):
    """At most `most` items, evenly spaced, the first and the last included."""
    return items if len(items) <= most else [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def curves(lines, keys):
    """{"x": steps, name: {"y": ..}}: for more than POINTS lines the means of equal pieces, with minimum and maximum in "low" and "high"."""
    size = -(-len(lines) // POINTS) or 1
    pieces = [lines[i:i + size] for i in range(0, len(lines), size)]
    found = {"x": [piece[-1]["step"] for piece in pieces]}
    for name, key in keys.items():
        values = [[y for y in (number(line.get(key)) for line in piece) if y is not None] for piece in pieces]
        of = {"y": lambda v: sum(v) / len(v), "low": min, "high": max} if size > 1 else {"y": max}
        found[name] = {bound: [number(f(v)) if v else None for v in values] for bound, f in of.items()}
    return found


def heat(stats):
    """{"x": steps, "forward_gain": [[value of each connection] of each step], ..} from {step: [numbers of each connection]}, in four digits."""
    steps = evenly(sorted(stats), max(2, CELLS // max(map(len, stats.values()), default=1)))
    rounded = lambda value: None if number(value) is None else float(f"{value:.4g}")
    return {"x": steps} | {key: [[rounded(connection.get(key)) for connection in stats[step]] for step in steps] for key in STATS}


def flat(settings, prefix=""):
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value if isinstance(value, str) else json.dumps(value)


def language_model(folder):
    """A run of train_lm."""
    notes = []
    config = folder / "config.json"
    settings = (parse(config.read_text(errors="replace")) if config.is_file() else None) or {}
    if not settings:
        notes.append("config.json could not be read")
    lines = by_step(read_lines(folder / "metrics.jsonl", notes))
    trained = [line for line in lines if "train_loss" in line]  # the first line of --init has none
    held_out = [(line["step"], number(line["val_loss"])) for line in lines if "val_loss" in line]
    stats = {}
    for line in read_lines(folder / "telemetry.jsonl", notes):
        connections = stats.setdefault(line["step"], [])
        if line.get("connection") == len(connections):
            connections.append(line)
    return {"name": folder.resolve().name, "group": "language model", "unit": f"nats per {'token' if settings.get('tokenizer') else 'character'}",
            "notes": notes, "settings": dict(flat(settings)), "step": lines[-1]["step"] if lines else 0, "steps": number(settings.get("steps")),
            "train": curves(trained, CURVES), "held_out": dict(zip("xy", zip(*evenly(held_out, POINTS)))),
            "best": min((pair[::-1] for pair in held_out if pair[1] is not None), default=None),
            "speed": statistics.median([s for line in trained if (s := number(line.get("tokens_per_s"))) is not None] or [0]),
            "bad": evenly([line["step"] for line in trained if None in (number(line["train_loss"]), number(line.get("grad_norm")))], SAMPLES),
            "telemetry": heat(stats),
            "samples": [(line["step"], str(line.get("text", ""))[:LETTERS])
                        for line in evenly(by_step(read_lines(folder / "samples.jsonl", notes)), SAMPLES)]}


def deep_network(path):
    """A run of the stability experiment: a line of settings, lines of steps, a line with the result."""
    notes = []
    with path.open(errors="replace") as file:
        settings = parse(file.readline()) or {}
    lines = [line for line in map(parse, path.read_text(errors="replace").split("\n")) if line and type(line.get("step")) is int]
    probes = {line["step"]: line["sublayers"] for line in lines if isinstance(line.get("sublayers"), dict)}
    stats = {step: [dict(zip(probe, values)) for values in zip(*probe.values())] for step, probe in probes.items()}
    step, task = lines[-1]["step"] if lines else 0, str(settings.get("task"))
    return {"name": f"{settings.get('mode')} {settings.get('variant')}".strip(), "group": task.replace("_", " "), "unit": TASKS.get(task, ""),
            "notes": notes, "settings": {key: value for key, value in flat(settings) if key != "run"}, "step": step, "steps": step,
            "train": curves(lines, {"loss": "loss", "grad_norm": "gradient_norm"}), "held_out": {}, "best": None, "speed": 0,
            "bad": evenly([line["step"] for line in lines if number(line.get("loss")) is None], SAMPLES), "telemetry": heat(stats), "samples": []}


def stability(folder):
    """The run of each task and connection at the shown learning rate, first seed."""
    results = Results(folder)
    return [deep_network(run.path) for task in results.tasks() for mode in results.modes(task) for run in results.compared(task, mode)[:1]]


def read(path):
    """The runs of a folder, or of a file of the stability experiment."""
    if (path / "metrics.jsonl").is_file() or (path / "config.json").is_file():
        return [language_model(path)]
    if (path / "summary.csv").is_file() and (path / "config.toml").is_file():
        return stability(path)
    if path.is_file() and path.suffix == ".jsonl":
        return [deep_network(path)]
    raise ValueError("holds no run of train_lm and no finished results of stability")


def page(runs, live):
    names = [(run["group"], run["name"]) for run in runs]
    for i, name in enumerate(names):
        if names.count(name) > 1:
            runs[i]["name"] += f" #{names[:i + 1].count(name)}"
    return fill("report", ", ".join(dict.fromkeys(run["name"] for run in runs)), {"written": time.time(), "live": live, "runs": runs})


def fill(kind, title, data):
    """The page of a kind of pages: page.html of its folder, with the files that it names, which may be the report's."""
    text = re.sub(r"@([\w/]+\.\w+)@", lambda part: (PARTS / part[1]).read_text(), (PARTS / kind / "page.html").read_text())
    text = text.replace("@title@", html.escape(title))
    return text.replace("@data@", json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def write(path, text):
    """Writes the file atomically: a browser may be reading it."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    unfinished.write_text(text, errors="replace")
    os.replace(unfinished, path)


def fail(text):
    sys.stderr.write(f"{pathlib.Path(sys.argv[0]).name}: {' '.join(text.split())}\n")
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=pathlib.Path,
                        help="results folder of train_lm or stability, or a file of the latter's runs/")
    parser.add_argument("--out", type=pathlib.Path, help="default: report.html in the folder of the only run, else here")
    parser.add_argument("--live", action="store_true", help="the page will be written again: a browser that shows it reloads it")
    parser.error = fail
    options = parser.parse_args()
    runs = []
    for path in options.runs:
        try:
            runs += read(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            fail(f"{path}: {error}")
    out = options.out or (options.runs[0] if len(options.runs) == 1 and options.runs[0].is_dir() else pathlib.Path()) / "report.html"
    try:
        write(out, page(runs, options.live))
    except OSError as error:
        fail(f"{out}: {error.strerror}")
    if not options.out:
        print(out)


if __name__ == "__main__":
    main()
