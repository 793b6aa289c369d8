#!/usr/bin/python3 -B
"""Runs stability as a user would: stability_test.py PROGRAM {smoke|results|settings|sharpness|bad-input|orphans|kill}"""
import collections
import csv
import itertools
import json
import math
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from program import check, check_refused, run, without_pictures

CONFIGS = pathlib.Path(__file__).parents[2] / "apps/stability"
MODES = ["residual", "hc", "mhc", "skip-residual", "skip-hc", "skip-mhc", "deepseek-v4", "hunyuan-v4", "gated", "single-pass", "attention-residual",
         "layer-scale", "rezero", "laurel", "manifold", "mhc-layer", "frac"]
FIGURES = ["gain", "divergence", "loss", "gradient_norm", "activation_norm", "ablations"]
LISTS = {"gradient_norm", "activation_norm", "forward_gain", "backward_gain", "composed_forward_gain", "composed_backward_gain", "row_error",
         "column_error", "similarity"}

# Of all numbers in the configurations but warmup, which is at most steps.
RANGES = {"divergence": "1 to 1000000", "probe_every": "1 to 1000000", "streams": "1 to 64", "sinkhorn_iterations": "1 to 1000",
          "max_history": "1 to 1024", "sublayers": "1 to 1000", "channels": "1 to 4096", "hidden": "1 to 16384", "batch": "1 to 65536",
          "steps": "2 to 1000000", "shown_learning_rate": "1e-12 to 1000", "blocks": "1 to 500", "context": "1 to 4096",
          "heads": "1 to 4096", "sharpness_every": "2 to 1000000"}
TRANSFORMER = """
[deep_transformer]
blocks = 2
context = 8
heads = 2
channels = 8
batch = 2
steps = 4
warmup = 1
modes = ["residual"]
learning_rates = [0.01]
shown_learning_rate = 0.01
seeds = [1]
sharpness_every = 2
"""
TINY = """
divergence = 3.0
probe_every = 4

[connection]
streams = 2
sinkhorn_iterations = 5
max_history = 2
init = "identity"
constraint = "simplex"

[deep_mlp_regression]
sublayers = 4
channels = 8
hidden = 8
batch = 4
steps = 10
warmup = 2
modes = ["residual", "hc", "mhc", "skip-mhc"]
learning_rates = [0.01, 100]
shown_learning_rate = 0.01
seeds = [1, 2]
"""
# Of an experiment with TINY: mode, setting, its values, the variants that they make.
ABLATIONS = [("hc", "streams", (2, 3), ("n2", "n3")), ("mhc", "streams", (2, 3), ("n2.i5", "n3.i5")),
             ("mhc", "sinkhorn_iterations", (1,), ("n2.i1",)), ("mhc", "mixing", ("rows",), ("n2.rows",)),
             ("skip-hc", "max_history", (3,), ("k3.identity",)), ("skip-mhc", "max_history", (3,), ("k3.identity.simplex",)),
             ("skip-mhc", "constraint", ("doubly_stochastic",), ("k2.identity.doubly_stochastic",)),
             ("skip-hc", "init", ("uniform",), ("k2.uniform",)), ("skip-mhc", "init", ("uniform",), ("k2.uniform.simplex",))]


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def runs_of(out):
    return {path.name: path.read_bytes() for path in (out / "runs").iterdir()}


def check_run(path, modes):
    """Lines of a run: settings, steps from 1 on, result; every list as long as the network is deep, nothing missing."""
    settings, *steps, result = map(json.loads, path.read_text().splitlines())
    check(path.name == settings["run"] + ".jsonl" and settings["mode"] in modes, f"{path.name}: settings {settings}")
    check(settings["run"].startswith(f"{settings['task']}.{settings['mode']}."), f"{settings['run']} is no name for {settings}")
    check([step["step"] for step in steps] == list(range(1, result["steps"] + 1)), f"{path.name}: steps")
    probes = [step["sublayers"] for step in steps if "sublayers" in step]
    check(probes and "sublayers" in steps[0], f"{path.name} has no probes")
    for probe in probes:
        check(set(probe) == LISTS, f"{path.name}: a probe has {set(probe)}")
        for key, values in probe.items():
            check(len(values) == settings["sublayers"], f"{path.name}: {key} has {len(values)} values for {settings['sublayers']} sublayers")
            streams = settings["mode"] in ("hc", "mhc") or key != "similarity"
            check(not streams or None not in values, f"{path.name}: {key} is not finite")
    if result["result"] == "trained":
        check(None not in [step[key] for step in steps for key in ("loss", "gradient_norm")], f"{path.name}: NaN in a run that was trained")
        check(result["reason"] == "", f"{path.name}: trained, but {result['reason']}")
    return settings, steps, result


def check_result(steps, result, divergence):
    """The last line of a run says what its other lines do, computed again."""
    losses = [math.nan if step["loss"] is None else step["loss"] for step in steps]
    ended = not math.isfinite(losses[-1]) or losses[-1] > divergence * losses[0]
    check((result["result"] == "diverged", result["steps"]) == (ended, len(losses)), f"{result} of {losses}")
    check(all(loss <= divergence * losses[0] for loss in losses[:-1]), f"went on after its divergence: {losses}")
    last = losses[-max(1, len(losses) // 10):]
    expected = {"first_loss": losses[0]} | ({} if ended else {"final_loss": sum(last) / len(last)})
    probe = [step["sublayers"] for step in steps if "sublayers" in step][-1]
    if not ended:
        expected |= {"forward_gain": probe["composed_forward_gain"][-1], "backward_gain": probe["composed_backward_gain"][0],
                     "row_error": max(probe["row_error"]), "column_error": max(probe["column_error"])}
    for key, value in expected.items():
        check(abs(result[key] - value) <= 1e-9 * abs(value), f"{key} is {result[key]}, but {value} by the other lines")


def check_same_start(results):
    """Networks of one seed compute the same function before training under all connections but those that mix history, scale layers or halve the residual."""
    first = {}
    for settings, steps, _ in results:
        if "uniform" not in settings["variant"] and settings["mode"] not in ("attention-residual", "layer-scale", "rezero", "manifold"):
            first.setdefault((settings["task"], settings["seed"]), {})[settings["run"]] = steps[0]["loss"]
    for losses in first.values():
        check(max(losses.values()) - min(losses.values()) < 2e-3, f"different starts: {losses}")


def check_summary(out, runs):
    """A row of summary.csv says what the first and the last line of its run do."""
    with (out / "summary.csv").open() as file:
        rows = {row["run"]: row for row in csv.DictReader(file)}
    check(rows.keys() == {settings["run"] for settings, _, _ in runs}, f"summary.csv has the runs {list(rows)}")
    seeds = [int(row["seed"]) for row in rows.values()]
    check(seeds == sorted(seeds), f"runs of the first seeds come first, not {seeds}")
    for settings, _, result in runs:
        said = {key: "" if value is None and key == "similarity" else math.nan if value is None else value
                for key, value in (settings | result).items() if key != "sublayers"}
        row = {key: type(said[key])(text) for key, text in rows[settings["run"]].items()}
        check(repr(dict(sorted(row.items()))) == repr(dict(sorted(said.items()))), f"{row} in summary.csv, but {said}")


def smoke(program, folder):
    config = CONFIGS / "smoke.toml"
    one, two = folder / "one", folder / "two"
    for out, jobs in ((two, 2), (one, 1)):
        result = run(program, config, "--out", out, "--jobs", jobs)
        check(result.returncode == 0, result.stderr)
    check("runs, 1 at a time" in result.stdout and "\n0 runs are finished already; the others take about" in result.stdout,
          f"no plan in {result.stdout}")
    check("\r" not in result.stdout, "a bar is drawn although this is no terminal")
    check(runs_of(one) == runs_of(two), "another number of jobs changed the lines")
    check((one / "summary.csv").read_bytes() == (two / "summary.csv").read_bytes(), "another number of jobs changed summary.csv")
    check((one / "config.toml").read_bytes() == config.read_bytes(), "config.toml is not the configuration")
    results = [check_run(path, MODES) for path in (one / "runs").iterdir()]
    seen = {(settings["task"], settings["mode"]) for settings, _, _ in results}
    check(seen == {(task, mode) for task in ("deep_mlp_regression", "deep_mlp_classification", "deep_transformer") for mode in MODES},
          f"not every mode on every task: {seen}")
    check_same_start(results)
    check_summary(one, results)
    mhc = [result for settings, _, result in results if settings["mode"] == "mhc"]
    check(all(abs(result["forward_gain"] - 1) < 1e-3 for result in mhc), "the forward gain of mhc is not 1")
    info = json.loads((one / "run_info.json").read_text())["sessions"]
    check(len(info) == 1 and {"command", "started", "git_commit", "machine"} <= set(info[0]), f"run_info.json has {info}")
    report = (one / "report.md").read_text()
    for name in FIGURES:
        check((one / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG"), f"{name}.png is no picture")
        check(f"figures/{name}.png" in report, f"report.md does not show {name}.png")
    check("diverged" in report and str(config) in report, "report.md lacks the definition or the command")


def check_report(out, runs, modes, rates):
    """The tables of report.md, computed again from the lines of the runs: by connection, by learning rate, statements, ablations."""
    keys, errors = ("final_loss", "forward_gain", "backward_gain"), ("row_error", "column_error")
    runs = [settings | result for settings, _, result in runs]
    lost = lambda group: [run for run in group if run["result"] == "diverged"]
    count = lambda group: f"{len(lost(group))} of {len(group)}"
    values = lambda group, key: [run[key] for run in group if run[key] is not None]
    median = lambda group, key: f"{statistics.median(values(group, key)):.4g}" if values(group, key) else "not finite"

    def of(mode, rate, seeds=(1, 2), variant=None):
        variant = variant or {"hc": "n2", "mhc": "n2.i5", "skip-mhc": "k2.identity.simplex"}.get(mode)
        return [run for run in runs if (run["mode"], run["learning_rate"], run["seed"] in seeds) == (mode, rate, True) and
                variant in (None, run["variant"])]

    def row(name, group):
        spread = (f"{median(group, key)} ({min(values(group, key)):.4g} to {max(values(group, key)):.4g})" for key in keys)
        return " | ".join([f"| {name}", count(group), *spread, *(f"{max(values(group, key)):.1e}" for key in errors)]) + " |\n"

    expected = ["\n4 sublayers of 8 channels, 33 steps, 2 seeds.\n", *(row(mode, of(mode, rates[0])) for mode in modes)]
    for mode, setting, settings, variants in ABLATIONS:
        for value, variant in zip(settings, variants, strict=True):
            group = of(mode, rates[0], (1, 2, 3), variant)
            check(len(group) == 3, f"no runs of {mode} with {setting} {value}")
            expected.append(row(f"{mode}: {setting} {value}", group))
    for cell in (count, *(lambda group, key=key: median(group, key) for key in keys)):
        expected.append("".join(" | ".join([f"| {mode}", *(cell(of(mode, rate)) for rate in rates)]) + " |\n" for mode in modes))
    hc, mhc = ({run["seed"]: run for run in of(mode, rates[0])} for mode in ("hc", "mhc"))
    swept = {mode: [run for rate in rates for run in of(mode, rate)] for mode in modes}
    ratio = min(hc[seed]["forward_gain"] / mhc[seed]["forward_gain"] for seed in hc)
    off = max(abs(run["forward_gain"] - 1) for run in mhc.values())
    worst, against = max(run["backward_gain"] for run in mhc.values()), lambda a, b: f"{count(swept[a])} against {count(swept[b])}"
    for measured, holds in (
            (f"at least {ratio:.4g} times", ratio >= 100), (f"at most {off:.1e} away", off <= 1e-3), (f"at most {worst:.4g}", worst < 2),
            (against("hc", "mhc"), len(lost(swept["hc"])) > len(lost(swept["mhc"]))),
            (against("mhc", "residual"), len(lost(swept["mhc"])) <= len(lost(swept["residual"])))):
        expected.append(f" | {measured} | {'yes' if holds else 'no'} |\n")
    report = (out / "report.md").read_text()
    check(" exceeds 3 times its first loss;" in report, "the configuration's divergence")
    for lines in expected:
        check(lines in report, f"report.md lacks {lines}\nin\n{report}")


def run_quickly(program, folder, config, out):
    without_pictures(folder)
    result = run(program, write(folder, "config.toml", config), "--out", out, "--jobs", 2)
    check(result.returncode == 0, result.stderr)
    return [check_run(path, MODES) for path in sorted((out / "runs").iterdir())]


def results(program, folder):
    ablations = ('\n[ablations]\ntask = "deep_mlp_regression"\nlearning_rate = 0.01\nseeds = [1, 2, 3]\nstreams = [2, 3]\nsinkhorn_iterations = [1]\n'
                 'mixings = ["rows"]\nmax_history = [3]\nconstraints = ["doubly_stochastic"]\ninits = ["uniform"]\n')
    runs = run_quickly(program, folder, TINY.replace("steps = 10", "steps = 33") + ablations, folder / "out")
    for _, steps, result in runs:
        check_result(steps, result, 3.0)
        probed = [step["step"] for step in steps if "sublayers" in step]
        due = [s for s, step in enumerate(steps, 1) if (s in (1, len(steps)) or s % 4 == 0) and step["loss"] is not None]
        check(probed == due, f"probes at {probed}, not at {due}")
    ways = collections.Counter(result["result"] for _, _, result in runs)
    check(len(ways) == 2, f"runs of both kinds are needed: {ways}")
    check_summary(folder / "out", runs)
    check_report(folder / "out", runs, ["residual", "hc", "mhc", "skip-mhc"], [0.01, 100])
    first = {settings["mode"]: steps[0]["sublayers"] for settings, steps, _ in runs if settings["seed"] == 1}
    for mode, key in itertools.product(("hc", "mhc"), ("activation_norm", "gradient_norm")):  # they start as the plain residual
        for value, plain in zip(first[mode][key], first["residual"][key], strict=True):
            check(abs(value - plain) < 1e-2 * plain, f"{mode}: {key} is {value} and not {plain}")
    losses = []  # the first step has all of a rate of 0.01, or half of 0.02
    for rate, warmup in (("0.01", 1), ("0.02", 2)):
        config = TINY.replace("warmup = 2", f"warmup = {warmup}").replace("[0.01, 100]", f"[{rate}]").replace("= 0.01", f"= {rate}")
        losses.append([step["loss"] for _, steps, _ in run_quickly(program, folder, config, folder / rate) for step in steps[:2]])
    check(losses[0] == losses[1] and len(losses[0]) == 16, f"other rates in the first step: {losses}")
    pair = TINY.replace('["residual", "hc", "mhc", "skip-mhc"]', '["residual", "hc"]')
    result = run(program, write(folder, "pair.toml", pair), cwd=folder)  # without --out
    named = re.search(r"^results: (runs/stability-pair-\d\S+)$", result.stdout, re.MULTILINE)
    check(result.returncode == 0 and named, f"{result.stdout}\n{result.stderr}")
    report = (folder / named[1] / "report.md").read_text()
    check("| hc |" in report and "| statement |" not in report, f"statements about modes that are not there: {report}")


def settings(program, folder):
    """Another value of any setting of a configuration changes the lines of runs, also without those that repeat settings."""
    other = {"sinkhorn_iterations": "1", "mixing": '"rows"', "init": '"identity"', "constraint": '"doubly_stochastic"', "modes": '["hc"]',
             "learning_rates": "[0.01, 50]", "seeds": "[3]"}  # of others, twice the value
    mlp = TINY.replace('["residual", "hc", "mhc", "skip-mhc"]', '["mhc", "skip-mhc"]').replace("seeds = [1, 2]", "seeds = [1]")
    mlp = mlp.replace("max_history = 2\n", 'max_history = 2\nmixing = "sinkhorn"\n').replace('"identity"', '"uniform"').replace("100]", "10]")
    bases = {"mlp": ("", mlp)}
    if os.path.isdir("/usr/share/common-licenses"):  # the text of the transformer
        bases["transformer"] = (TINY[:TINY.index("[deep_mlp")], TRANSFORMER.replace("sharpness_every = 2\n", ""))

    def lines(name, config):
        run_quickly(program, folder, config, folder / name)
        return sorted(path.read_text().partition("\n")[2] for path in (folder / name / "runs").iterdir())

    for task, (before, base) in bases.items():
        usual = lines(task, before + base)
        for line in base.splitlines():
            key, _, value = line.partition(" = ")
            if value and key != "shown_learning_rate":  # which figures and report.md show
                changed = base.replace(f"\n{line}\n", f"\n{key} = {other.get(key) or 2 * json.loads(value)}\n")
                check(lines(f"{task}-{key}", before + changed) != usual, f"{key} = {value} of the {task} has no effect")


def sharpness(program, folder):
    config, out = write(folder, "sharp.toml", TINY + "sharpness_every = 4\n"), folder / "out"
    result = run(program, config, "--out", out)
    check(result.returncode == 0, result.stderr)
    check(re.search(r"^run 0/16 \d+ at a time \| \d{1,2}[smh]\S* left$", result.stdout, re.MULTILINE), f"no progress in {result.stdout}")
    for path in (out / "runs").iterdir():
        settings, steps, result = check_run(path, MODES)
        measured = {step["step"]: step["sharpness"] for step in steps if "sharpness" in step}
        check(list(measured) == [step for step in (4, 8) if step <= result["steps"]], f"{path.name}: measured at {list(measured)}")
        for values in measured.values():
            check(values["largest"] > 0 and values["preconditioned"] > 0, f"{path.name}: {values}")
            check(abs(values["limit"] * settings["learning_rate"] - 38) < 1e-9, f"{path.name}: limit {values['limit']}")
    check((out / "figures/sharpness.png").read_bytes().startswith(b"\x89PNG"), "sharpness.png is no picture")
    check("figures/sharpness.png" in (out / "report.md").read_text(), "report.md does not show sharpness.png")


def bad_input(program, folder):
    out = folder / "new"
    ablations = 'seeds = [1, 2]\n[ablations]\ntask = "deep_mlp_regression"\nlearning_rate = 0.01\nseeds = '
    cases = [
        ("none.toml: cannot be opened: No such file", None, None),
        ("line 2: expected ASCII", "divergence = 3.0", "divergence = 3.0  # ×"),
        ("a: expected one of the keys", "divergence = 3.0", "divergence = 3.0\n" + "a." * 64 + "a = 1"),
        ("line 2: expected keys and brackets at most 64 deep", "divergence = 3.0", "a." * 65 + "a = 1"),
        ("line 2: expected keys and brackets at most 64 deep", "divergence = 3.0", "a." * 32_000 + "a = 1"),
        ("line 3: expected keys and brackets at most 64 deep", "divergence = 3.0", "\n[" + " . ".join(['"\\".,"'] * 65) + "]"),
        ("line 4: expected keys", "divergence = 3.0", 'a = """\n# "\n' + '""""", b = [{' + "c.'d,'." * 40 + "e = 1"),
        ("line 2: expected keys and brackets at most 64 deep", "divergence = 3.0", "a = " + "[" * 65 + "]" * 65),
        ("line 3: expected keys and brackets at most 64 deep", "divergence = 3.0", "# [\na = " + "[" * 65 + "]" * 65),
        ("a: expected one of the keys", "divergence = 3.0", f"divergence = 3.0\na = {{{', '.join(f'b.c{i} = 1' for i in range(65))}}}"),
        ("a: expected one of the keys", "divergence = 3.0", "divergence = 3.0\n" + "\n".join(f"a.b{i} = 1" for i in range(65))),
        ("a: expected one of the keys", "divergence = 3.0", f"divergence = 3.0  # {'.' * 100}\na = ['{'.' * 100}', {'[0.5],' * 100}]"),
        ("line 2: expected TOML", "divergence = 3.0", "divergence = = 3"),
        ("divergence: expected a number from 1 to 1000000, got 0.5", "divergence = 3.0", "divergence = 0.5"),
        ("divergence: expected a number from 1 to 1000000, got nothing", "divergence = 3.0", ""),
        ("divergence: expected a number from 1 to 1000000, got a list", "divergence = 3.0", "divergence = [3]"),
        ("probe_every: expected an integer from 1 to 1000000, got 1.5", "probe_every = 4", "probe_every = 1.5"),
        ("probe_every: expected an integer from 1 to 1000000, got nothing", "probe_every = 4", ""),
        ("color: expected one of the keys divergence, ", "probe_every = 4", "probe_every = 4\ncolor = 1"),
        ("deep_mlp_regression.sublayer: expected one of the keys sublayers, ", "steps = 10", "steps = 10\nsublayer = 4"),
        ("deep_mlp_regression.sublayers: expected an integer from 1 to 1000, got 0", "sublayers = 4", "sublayers = 0"),
        ("deep_mlp_regression.sublayers: expected an integer from 1 to 1000, got 'four'", "sublayers = 4", 'sublayers = "four"'),
        ("deep_mlp_regression.batch: expected sizes whose activations fit into 16 GB, got about 31465 GB",
         "sublayers = 4\nchannels = 8\nhidden = 8\nbatch = 4", "sublayers = 1000\nchannels = 4096\nhidden = 8\nbatch = 60000"),
        ("deep_mlp_regression.warmup: expected an integer from 0 to 10, got 11", "warmup = 2", "warmup = 11"),
        ("deep_mlp_regression.modes[0]: expected one of residual, hc, mhc, ", 'modes = ["residual"', 'modes = ["plain"'),
        ("deep_mlp_regression.modes: expected a list, each one of", 'modes = ["residual", "hc", "mhc", "skip-mhc"]', "modes = []"),
        ("deep_mlp_regression.modes: expected a list, each one of", 'modes = ["residual", "hc", "mhc", "skip-mhc"]', 'modes = "hc"'),
        ("deep_mlp_regression.learning_rates[1]: expected a number from", "100]", "-1]"),
        ("deep_mlp_regression.shown_learning_rate: expected one of learning_rates, got 0.02", "rate = 0.01", "rate = 0.02"),
        ("deep_mlp_regression.seeds[1]: expected no value twice, got 1", "seeds = [1, 2]", "seeds = [1, 1]"),
        ("deep_mlp_regression.seeds: expected at most 1000 values, got 1001", "seeds = [1, 2]", f"seeds = {list(range(1001))}"),
        ("deep_mlp_regression.seeds: expected a list for at most 100000 runs, got 2400000", "100]\nshown_learning_rate = 0.01\nseeds = [1, 2]",
         f"{str([0.02 + i / 1e4 for i in range(599)])[1:]}\nshown_learning_rate = 0.01\nseeds = {list(range(1000))}"),
        ("deep_mlp_regression.sharpness_every: expected an integer from 2", "seeds = [1, 2]", "seeds = [1]\nsharpness_every = 1"),
        ("connection.init: expected one of identity, uniform, zeros, got 'random'", 'init = "identity"', 'init = "random"'),
        ("connection: expected a table, got", "[connection]", "[connections]"),
        ("ablations.task: expected a task that has a table of its own", "seeds = [1, 2]", 'seeds = [1]\n[ablations]\ntask = "deep_transformer"'),
        *((f"ablations.{expected}", "seeds = [1, 2]", f"{ablations}{lines}\n") for expected, lines in (
            ("streams[0]: expected an integer from 1 to 64, got 65", "[1]\nstreams = [65]"),
            ("sinkhorn_iterations[0]: expected an integer from 1 to 1000, got 1001", "[1]\nsinkhorn_iterations = [1001]"),
            ("max_history[1]: expected an integer from 1 to 1024, got 0", "[1]\nmax_history = [1, 0]"),
            ("seeds: expected a list for at most 100000 runs, got 102000", f'{list(range(1000))}\nmax_history = {list(range(1, 47))}\n'
             'streams = [2]\nsinkhorn_iterations = [1]\nmixings = ["rows"]\nconstraints = ["simplex"]\ninits = ["identity"]'))),
        ("deep_transformer.heads: expected a divisor of channels 10, got 4", "[deep_mlp_regression]\nsublayers = 4\nchannels = 8\nhidden = 8",
         "[deep_transformer]\nblocks = 2\nchannels = 10\nheads = 4\ncontext = 8"),
        ("deep_mlp_regression: expected at least one task, got none", TINY[TINY.index("[deep_mlp"):], ""),
    ]
    check_refused("the command line: must be UTF-8 but is", run(program, os.fsdecode(b"none\xff.toml")))
    for expected, old, new in cases:
        check(old is None or old in TINY, f"the test changes what is not there: {old}")
        config = folder / "none.toml" if old is None else write(folder, "bad.toml", TINY.replace(old, new))
        result = run(program, config, "--out", out)
        check_refused(expected, result)
        check(str(config) in result.stderr, f"the file is not named: {result.stderr}")
    # Both ends of the range of every number, and what is next to them.
    for line in {line for line in (TINY + TRANSFORMER).splitlines() if re.fullmatch(r"\w+ = [0-9.]+", line)}:
        key = line.split(" = ")[0]

        def says(value):
            config = write(folder, "edge.toml", (TINY + TRANSFORMER).replace(f"\n{line}\n", f"\n{key} = {value}\n", 1))
            return run(program, config, "--out", folder).stderr  # which holds other files

        bounds = re.search(rf"\b{key}: expected (an integer|a number) from (\S+) to (\S+), got 'x'", says("'x'"))
        check(bounds and f"{bounds[2]} to {bounds[3]}" == RANGES.get(key, f"0 to {bounds[3]}"), f"{key} has another range: {bounds}")
        step = 1 if bounds[1] == "an integer" else 1e-3 * float(bounds[2])
        number = int if bounds[1] == "an integer" else float
        for value, legal in ((number(bounds[2]), True), (number(bounds[2]) - step, False), (number(bounds[3]), True), (number(bounds[3]) * 2, False)):
            refused = f"{key}: expected {bounds[1]} from {bounds[2]} to {bounds[3]}, got" in says(value)
            check(refused != legal, f"{key} = {value} is legal: {legal}, but {says(value)}")
    good = write(folder, "good.toml", TINY)
    check_refused("--jobs", run(program, good, "--jobs", 0, "--out", out))
    check_refused("config", run(program, "--out", out))
    check_refused("holds other files", run(program, good, "--out", folder))
    check(not out.exists(), "a folder was made for a configuration that was refused")
    (out / "runs").mkdir(parents=True)  # as a start that was killed leaves it
    write(out, ".lock", "")
    write(out, "config.toml.0123456789abcdef.tmp", "half")
    other = write(out / "runs", "other", "")
    check_refused("holds other files", run(program, good, "--out", out))
    other.unlink()
    check(run(program, good, "--out", out).returncode == 0, "the good run failed")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    check_refused("made with another configuration", run(program, write(folder, "other.toml", TINY + "\n"), "--out", out))
    check(before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}, "files of the existing results changed")
    results = [check_run(path, MODES) for path in (out / "runs").iterdir()]
    first = min((out / "runs").iterdir())
    first.unlink()
    write(out, "run_info.json", '{"sessions": [' + "[" * 100_000 + "]" * 100_000 + "]}")
    os.mkfifo(first)  # whoever opened it would wait for a writer
    check_refused(f"{first}: must be a regular file", run(program, good, "--out", out))
    check({"trained", "diverged"} == {result["result"] for _, _, result in results}, "learning rate 100 must diverge, 0.01 must not")


def children_of(process):
    try:
        return list(map(int, pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))
    except FileNotFoundError:
        return []


def wait_for(condition, message, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, message)
        time.sleep(0.002)


def start(command, out):
    """Starts the program and waits until its first run is in training."""
    for unfinished in (out / "runs").glob("*.tmp"):
        unfinished.unlink()
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list((out / "runs").glob("*.tmp")), "no run was started")
    return parent


def orphans(program, folder):
    """Runs end with a parent that is killed, and the next start removes the files that they leave."""
    one = TINY.replace("steps = 10", "steps = 1000000").replace("[0.01, 100]", "[0.01]").replace("[1, 2]", "[1]")  # run of each mode
    config, out = write(folder, "endless.toml", one), folder / "out"
    is_there, left = (lambda child: os.path.exists(f"/proc/{child}/exe")), set()
    for _ in range(2):
        parent = subprocess.Popen([program, config, "--out", out, "--jobs", "2"], stdout=subprocess.DEVNULL)
        wait_for(lambda: len(set((out / "runs").glob("*.tmp")) - left) == 2, "no runs were started")
        children = children_of(parent)
        parent.kill()
        parent.wait()
        try:
            wait_for(lambda: len(children) == 2 and not any(map(is_there, children)), f"{children} outlived their parent", seconds=10)
        finally:
            for child in filter(is_there, children):
                os.kill(child, signal.SIGKILL)
        check(not left & set(out.rglob("*.tmp")), f"{left} stay")
        sessions = [session["command"] for session in json.loads((out / "run_info.json").read_text())["sessions"]]
        check(sessions == [f"{program} {config} --out {out} --jobs 2"] * (2 if left else 1), f"{sessions}")
        write(out, "config.toml.0123456789abcdef.tmp", "half")
        left = set(out.rglob("*.tmp"))
    parent = start([program, config, "--out", out, "--jobs", "1"], out)
    (child,) = children_of(parent)
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: child not in children_of(parent), "a child that was killed is not noticed")
    parent.send_signal(signal.SIGTERM)
    said, _ = parent.communicate(timeout=60)
    check(parent.returncode == 130 and re.search(r" take about [1-9](.*\n)+lost: \S+ \(killed by signal 9\)\ninterrupted; to continue: ", said),
          f"exit code {parent.returncode}: {said}")
    with_limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))}  # less than a run has
    without_pictures(folder)
    result = run(program, config, "--out", folder / "full", **with_limit)
    check(result.stdout.count(" (exit code 1)\n") == 4, f"runs that could not be written: {result.stdout} {result.stderr}")


def kill(program, folder):
    """The parent is killed, then children, then it is interrupted: finished runs are kept, and the bytes are the same."""
    config = write(folder, "slow.toml", TINY.replace("steps = 10", "steps = 300"))
    whole, broken = folder / "whole", folder / "broken"
    check(run(program, config, "--out", whole).returncode == 0, "the uninterrupted experiment failed")
    command = [program, str(config), "--out", str(broken), "--jobs", "1"]
    finished = lambda: sorted((broken / "runs").glob("*.jsonl"))

    parent = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(lambda: len(finished()) >= 2, "no runs got finished")
    children = children_of(parent)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(os.path.exists(f"/proc/{child}/exe") for child in children), "children outlived their parent")
    kept = {path: path.stat().st_mtime_ns for path in finished()}
    check(len(kept) < len(runs_of(whole)), "everything was finished before the kill")

    parent = start(command, broken)
    os.kill(children_of(parent)[0], signal.SIGKILL)
    out, err = parent.communicate(timeout=120)
    check(parent.returncode == 1 and " (killed by signal 9)\n" in err, f"exit code {parent.returncode}, {err!r}")
    check(f"{len(kept)} runs are finished already" in out, f"finished runs were not found: {out}")
    missing = set(runs_of(whole)) - set(path.name for path in finished())
    check(len(missing) == 1 and f"{len(runs_of(whole)) - 1} of {len(runs_of(whole))} runs" in (broken / "report.md").read_text(),
          f"a killed child lost {missing}")

    (broken / "runs" / kept.popitem()[0].name).unlink()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        parent = start(command, broken)
        parent.send_signal(number)
        out, _ = parent.communicate(timeout=120)
        check(parent.returncode == 130 and "interrupted; to continue" in out, f"{number.name}: exit code {parent.returncode}, {out!r}")

    check(run(*command).returncode == 0, "the continued experiment failed")
    check(runs_of(whole) == runs_of(broken), "interruptions changed the lines, or a temporary file is left")
    check(all(path.stat().st_mtime_ns == when for path, when in kept.items()), "a finished run was repeated")
    check((whole / "summary.csv").read_bytes() == (broken / "summary.csv").read_bytes(), "interruptions changed summary.csv")


if __name__ == "__main__":
    program, case = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        {"smoke": smoke, "results": results, "settings": settings, "sharpness": sharpness, "bad-input": bad_input, "orphans": orphans,
         "kill": kill}[case](program, pathlib.Path(name))
