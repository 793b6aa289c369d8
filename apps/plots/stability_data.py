"""Reads the results folder of the stability experiment."""
import csv
import json
import math
import pathlib
import statistics
import tomllib

TASKS = {"deep_mlp_regression": "mean squared error", "deep_mlp_classification": "cross-entropy [nats]",
         "deep_transformer": "cross-entropy [nats per character]"}
MODES = ["residual", "hc", "mhc", "skip-residual", "skip-hc", "skip-mhc", "deepseek-v4", "hunyuan-v4", "gated", "single-pass", "attention-residual",
         "layer-scale", "rezero", "laurel", "manifold", "mhc-layer", "frac"]


class Run:
    """One run's line of summary.csv, and on demand its steps."""

    def __init__(self, folder, row):
        self.name, self.task, self.mode, self.variant = row["run"], row["task"], row["mode"], row["variant"]
        self.learning_rate, self.seed = float(row["learning_rate"]), int(row["seed"])
        self.diverged, self.final_loss = row["result"] == "diverged", float(row["final_loss"])
        self.forward_gain, self.backward_gain = float(row["forward_gain"]), float(row["backward_gain"])
        self.path = folder / "runs" / f"{self.name}.jsonl"

    def steps(self):
        with self.path.open() as file:
            return [line for line in map(json.loads, file) if "step" in line]


class Results:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.config = tomllib.loads((folder / "config.toml").read_text())
        with (folder / "summary.csv").open() as file:
            self.runs = [Run(folder, row) for row in csv.DictReader(file)]

    def tasks(self):
        return [task for task in TASKS if task in self.config]

    def modes(self, task):
        return [mode for mode in MODES if mode in self.config[task]["modes"]]

    def label(self, mode, **changes):
        """The settings of a connection as in a run's name: `n4.i20`."""
        c = {**self.config["connection"], **changes}
        normalized = "n{streams}.i{sinkhorn_iterations}"
        mixed = normalized if c.get("mixing", "sinkhorn") == "sinkhorn" else "n{streams}.{mixing}"
        labels = {"hc": "n{streams}", "mhc": mixed, "skip-residual": "k{max_history}", "skip-hc": "k{max_history}.{init}",
                  "skip-mhc": "k{max_history}.{init}.{constraint}", "deepseek-v4": normalized, "hunyuan-v4": "n{streams}", "gated": "n{streams}",
                  "single-pass": normalized, "manifold": "i{sinkhorn_iterations}", "mhc-layer": normalized}
        return labels.get(mode, "").format(**c)

    def select(self, task, mode, learning_rate, seeds, **changes):
        variant = self.label(mode, **changes)
        return [run for run in self.runs if (run.task, run.mode, run.variant, run.learning_rate) == (task, mode, variant, learning_rate)
                and run.seed in seeds]

    def compared(self, task, mode, learning_rate=None):
        """The runs of all seeds at a learning rate of the comparison, by default the shown one."""
        table = self.config[task]
        return self.select(task, mode, learning_rate or table["shown_learning_rate"], table["seeds"])


def band(rows):
    """Median, minimum and maximum at each position of lists that may differ in length, without values that are not finite."""
    length = max(map(len, rows), default=0)
    columns = [[row[i] for row in rows if i < len(row) and row[i] is not None and math.isfinite(row[i])] for i in range(length)]
    return [[of(column) if column else math.nan for column in columns] for of in (statistics.median, min, max)]
