#!/usr/bin/python3
"""Prints Google Benchmark results as a table and appends them as JSON lines, one file a program."""

import argparse
import json
import pathlib
import subprocess
import sys

STANDARD = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "threads",
            "aggregate_name", "aggregate_unit", "iterations", "real_time", "cpu_time", "time_unit", "label"}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def medians(results):
    """One record a benchmark: name, seconds, and the program's own counters such as bytes_per_second."""
    for run in results["benchmarks"]:
        if run.get("error_occurred"):
            sys.exit(f"{run['run_name']}: {run['error_message']}")
        if run.get("aggregate_name") == "median":
            counters = {key: value for key, value in run.items() if key not in STANDARD}
            yield {"name": run["run_name"], "seconds": run["real_time"] * SECONDS[run["time_unit"]], **counters}


def readable(value):
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value * 1e9:.3g} n" if value else "0 "


def counter(key, value):
    return f"{key} {value:.0%}" if key.startswith("share") else f"{key} {readable(value)}".rstrip()


def table(records):
    width = max(len(record["name"]) for record in records)
    for record in records:
        counters = [counter(key, value) for key, value in record.items() if key not in ("name", "seconds")]
        print(f"{record['name']:<{width}}  {readable(record['seconds']) + 's':>8}  {'  '.join(counters)}")


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
        records = list(medians(results))
        print(f"\n{path.stem}")
        table(records)
        about = {"date": results["context"]["date"], "commit": commit(), "cpus": results["context"]["num_cpus"]}
        with open(arguments.out / f"{path.stem}.jsonl", "a") as lines:
            lines.writelines(json.dumps(about | record) + "\n" for record in records)


if __name__ == "__main__":
    main()
