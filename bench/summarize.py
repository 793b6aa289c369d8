#!/usr/bin/python3
"""Prints Google Benchmark results as a table, with the forms of an operation on one line, and appends them as JSON
lines, one file per program."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

STANDARD = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "threads",
            "aggregate_name", "aggregate_unit", "iterations", "real_time", "cpu_time", "time_unit", "label"}
FORMS = {"fused", "composed", "scalar"}  # of one operation
NOT_SHOWN = {"name", "seconds", "p10", "p90", "calls"}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def plain(name):
    """The name without the suffixes of Google Benchmark about the measurement."""
    return re.sub(r"(/min_time:[^/]*|/repeats:\d+|/iterations:\d+|/real_time|/manual_time)+$", "", name)


def records_of(results):
    """One record per benchmark: name, median, p10 and p90 of a call in seconds, and the program's own counters."""
    records = {}
    for run in results["benchmarks"]:
        if run.get("error_occurred"):
            sys.exit(f"{run['run_name']}: {run['error_message']}")
        statistic = run.get("aggregate_name")
        if statistic not in ("median", "p10", "p90"):
            continue
        record = records.setdefault(run["run_name"], {"name": plain(run["run_name"])})
        seconds = run["real_time"] * SECONDS[run["time_unit"]] / run.get("calls", 1)
        if statistic == "median":
            counters = {key: value for key, value in run.items() if key not in STANDARD}
            record.update({"seconds": seconds, **counters})
        else:
            record[statistic] = seconds
    return list(records.values())


def readable(value):
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value * 1e9:.3g} n" if value else "0 "


def counter(key, value):
    return f"{key} {value:.0%}" if key.startswith("share") else f"{key} {readable(value)}".rstrip()


def forms_of(records):
    """{name without its form: {form: record}}; "" is the form of operations with only one."""
    groups = {}
    for record in records:
        name, _, form = record["name"].rpartition("/")
        if form not in FORMS:
            name, form = record["name"], ""
        groups.setdefault(name, {})[form] = record
    return groups


def spread(record):
    if "p10" not in record:
        return ""
    return f"({readable(record['p10'])}s .. {readable(record['p90'])}s)"


def line(forms):
    """The time of the first form, the ratios of the other forms to it, and the counters of the first."""
    (_, first), *others = forms.items()
    slower = "  ".join(f"{name} {readable(other['seconds']) + 's':>8} {other['seconds'] / first['seconds']:>6.1f}x"
                       for name, other in others)
    counters = "  ".join(counter(key, value) for key, value in first.items() if key not in NOT_SHOWN)
    return [f"{readable(first['seconds']) + 's':>8}", spread(first), slower, counters]


def table(records):
    rows = [[name, *line(forms)] for name, forms in forms_of(records).items()]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths) if width).rstrip())


def commit():
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=pathlib.Path(__file__).parent,
                         capture_output=True, text=True)
    return git.stdout.strip() or None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=pathlib.Path, help="files written with --benchmark_out")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder of the JSON lines")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for path in arguments.results:
        results = json.loads(path.read_text())
        records = records_of(results)
        print(f"\n{path.stem}")
        table(records)
        about = {"date": results["context"]["date"], "commit": commit(), "cpus": results["context"]["num_cpus"]}
        with open(arguments.out / f"{path.stem}.jsonl", "a") as lines:
            lines.writelines(json.dumps(about | record) + "\n" for record in records)


if __name__ == "__main__":
    main()
