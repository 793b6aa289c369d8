#!/usr/bin/python3 -B
"""Runs train_lm as a user would: train_lm_test.py PROGRAM {outputs|connections|optimizers|mixed|medium|gradients|blocks|best|upcycling|pretrained|bad-input|nonfinite}"""
import json
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

from program import check, check_refused, run, without_pictures, write_text
from tiny_run import TINY, losses, named_tensors, shaped_tensors, tensors


def outputs(program, folder):
    text, out = write_text(folder), folder / "run"
    result = run(program, "--text", text, *TINY, "--steps", 120, "--eval-every", 40, "--out", out)
    check(result.returncode == 0, result.stderr)
    check("\r" not in result.stdout and "bits: portable" not in result.stdout, f"no terminal and no portable bits: {result.stdout}")
    body = text.read_text()
    said = f"\ntext: {len(body)} characters of {len(set(body))}; {len(body) - 9 * len(body) // 10} held out. Results: {out}\n"
    check(said in result.stdout, f"'{said}' is not in {result.stdout}")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    check([line["step"] for line in lines] == list(range(1, 121)), "metrics.jsonl must have one line a step")
    check(set(lines[0]) == {"step", "train_loss", "grad_norm", "learning_rate", "tokens_per_s"}, f"keys {set(lines[0])}")
    check([line["step"] for line in lines if "val_loss" in line] == [40, 80, 120], "val_loss where evaluated")
    check(lines[-1]["val_loss"] < 0.8 * lines[0]["train_loss"], "the loss must fall")
    shown = re.search(r"^step 120/120 loss (\S+) \| (\S+)k tokens/s \| 0s left$", result.stdout, re.MULTILINE)
    check(shown and shown[1] == f"{lines[-1]['train_loss']:.4f}", f"{shown} and not {lines[-1]}")
    check(abs(float(shown[2]) - lines[-1]["tokens_per_s"] / 1000) < 0.06, f"{shown} and not {lines[-1]}")
    config = json.loads((out / "config.json").read_text())
    check({"git_commit", "machine", "steps", "seed"} <= set(config), f"config.json has {set(config)}")
    head = subprocess.run(["git", "-C", pathlib.Path(program).parent, "rev-parse", "HEAD"], capture_output=True, text=True)
    check(config["git_commit"] == (head.stdout.strip() or "unknown"), f"config.json has the commit {config['git_commit']}")
    check((out / "loss.png").read_bytes().startswith(b"\x89PNG") and f"\npicture: {out}/loss.png\n" in result.stdout, "loss.png is no picture")
    check(not [p for p in out.iterdir() if re.search("tmp|ledger|telemetry|gradients|events|report", p.name)], "a file that nobody asked for")
    again = run(program, "--text", text, *TINY, "--steps", 120, "--out", folder / "again", "--threads", 1)
    check(again.returncode == 0, again.stderr)
    check(tensors(out) == tensors(folder / "again"), "another number of threads changed the parameters")
    slow = ["--dtype", "bf16", "--matmul-precision", "medium", "--steps", 1, "--sample", 0, "--out", folder / "slow"]
    said = run(program, "--text", text, *TINY[:-4], "--warmup", 0, *slow, env=os.environ | {"BRAID_ISA": "baseline"}).stdout
    check("\nbf16: products by f32, this processor has none: " in said and "\n--matmul-precision medium: this processor has no" in said, said)
    arithmetic = named_tensors(folder / "slow/checkpoint.safetensors")[1]["instruction_set"]
    check(re.fullmatch(r"baseline \(\w+\), bf16 by f32", arithmetic), f"the checkpoint is of {arithmetic}")


def optimizers(program, folder):
    """Every optimizer, experts and LoRA learn, and resume bit for bit; LoRA changes itself and what --train says alone."""
    text = write_text(folder)
    cases = {name: ["--optimizer", name, "--lr", lr] for name, lr in (("muon", 5e-3), ("lion", 1e-3), ("adafactor", 5e-2))}
    cases["experts"] = ["--experts", 4, "--experts-per-token", 1, "--lr", 5e-3]
    cases["muon-experts"] = ["--experts", 3, "--optimizer", "muon", "--connection", "mhc", "--lr", 5e-3]
    start = folder / "muon-whole"
    cases["lora"] = ["--init", start, "--lora", 2, "--lr", 5e-3]
    cases["lora-connections"] = ["--init", start, "--lora", 2, "--connection", "mhc", "--train", "connections", "--lr", 5e-3]
    for name, settings in cases.items():
        flags = ["--text", text, *TINY, *settings, "--min-lr", settings[-1]]
        whole, broken = folder / f"{name}-whole", folder / f"{name}-broken"
        for out, more in ((whole, ["--steps", 40]), (broken, ["--steps", 20]), (broken, ["--steps", 40, "--resume", "--threads", 1])):
            result = run(program, *flags, "--out", out, *more)
            check(result.returncode == 0, f"{name}: {result.stderr}")
        check(tensors(whole) == tensors(broken), f"{name}: resumption changed the parameters")
        check(losses(whole) == losses(broken), f"{name}: resumption changed the metrics")
        if name.startswith("lora"):
            before, after = (named_tensors(run_folder / "checkpoint.safetensors")[0] for run_folder in (start, whole))
            changed = [key for key in before if key.startswith("model.") and before[key] != after[key]]
            check(changed == [], f"{name}: {changed} changed")
            trained = {key for key in after if key.startswith("optimizer.first_moment.")}
            check(trained and all(".lora." in key or ".connection." in key for key in trained), f"{name}: {trained} are trained")
            check(any(".connection." in key for key in trained) == (name == "lora-connections"), f"{name}: {trained} are trained")
            generated = run(pathlib.Path(program).parent / "generate", "--run", whole, "--tokens", 5)
            check(generated.returncode == 0, generated.stderr)
        else:
            check(losses(whole)[-1] < 0.9 * losses(whole)[0], f"{name}: the loss must fall")
        if "experts" in name:
            correction = max(map(abs, shaped_tensors(whole / "checkpoint.safetensors")["model.blocks.0.mlp.correction"]))
            check(0 < correction < 0.0401, f"{name}: experts are corrected by {correction}, but in 40 steps of 0.001")
            check("of a token" in result.stdout, f"{name}: the summary does not tell active parameters: {result.stdout}")
    for name in ("experts", "lora", "lora-connections"):  # sizes, experts and ranks are the model's
        source, out = folder / f"{name}-whole", folder / f"{name}-again"
        result = run(program, "--text", text, "--init", source, "--steps", 0, "--sample", 0, "--out", out)
        check(result.returncode == 0, f"--init of {name}: {result.stderr}")
        line = json.loads((out / "metrics.jsonl").read_text())
        check(line["val_loss"] == line["init_val_loss"], f"--init of {name}: {line}")


CONNECTIONS = {
    "residual": [],
    "hc": [],
    "mhc": ["--streams", 3, "--mixing", "newton"],
    "manifold": ["--sinkhorn-iterations", 5],
    "mhc-layer": ["--streams", 2],
    "skip": ["--skip-constraint", "doubly_stochastic", "--skip-projection", "post_step", "--skip-init", "uniform"],
    "deepseek-v4": ["--sinkhorn-iterations", 5, "--head", "weighted"],
    "hunyuan-v4": ["--head", "softmax"],
    "gated": ["--head", "gated"],
    "single-pass": ["--streams", 2],
    "attention-residual": ["--depth-block", 2],
    "frac": ["--fractions", 2, "--proposals", 2, "--streams", 2],
    "layer-scale": ["--scale-init", 0.5],
    "rezero": [],
    "laurel": ["--laurel-rank", 2],
}


def connections(program, folder):
    """Each connection learns, and resumes bit for bit; the learning rate is constant so that --steps may change."""
    text = write_text(folder)
    for name, settings in CONNECTIONS.items():
        flags = ["--text", text, *TINY, "--lr", 5e-3, "--min-lr", 5e-3, "--connection", name, *settings, "--telemetry-every", 20]
        whole, broken = folder / f"{name}-whole", folder / f"{name}-broken"
        for out, more in ((whole, ["--steps", 40]), (broken, ["--steps", 20]), (broken, ["--steps", 40, "--resume"])):
            result = run(program, *flags, "--out", out, *more)
            check(result.returncode == 0, f"{name}: {result.stderr}")
        config = json.loads((whole / "config.json").read_text())
        saved = dict(zip(settings[::2], settings[1::2]))
        for flag, value in saved.items():
            check(config[flag[2:].replace("-", "_")] == value, f"{name}: config.json has another {flag}")
        check(tensors(whole) == tensors(broken), f"{name}: resumption changed the parameters")
        check(losses(whole) == losses(broken), f"{name}: resumption changed the metrics")
        check(losses(whole)[-1] < 0.9 * losses(whole)[0], f"{name}: the loss must fall")
        stats = (whole / "telemetry.jsonl").read_bytes()
        check(stats == (broken / "telemetry.jsonl").read_bytes(), f"{name}: resumption changed the telemetry")
        seen = [(line["step"], line["connection"]) for line in map(json.loads, stats.splitlines())]
        check(seen == [(20, 0), (20, 1), (40, 0), (40, 1)], f"{name}: telemetry.jsonl has lines for {seen}")


def mixed(program, folder):
    """--dtype bf16 learns as f32 does under each connection, and resumes bit for bit with f32 parameters."""
    text = write_text(folder)
    for name, settings in CONNECTIONS.items():
        flags = ["--text", text, *TINY, "--lr", 5e-3, "--min-lr", 5e-3, "--connection", name, *settings]
        mixed, broken, single = (folder / f"{name}-{part}" for part in ("mixed", "broken", "single"))
        bf16 = ["--dtype", "bf16"]
        for out, more in ((mixed, ["--steps", 30, *bf16]), (broken, ["--steps", 15, *bf16]),
                          (broken, ["--steps", 30, *bf16, "--resume", "--threads", 1]), (single, ["--steps", 30])):
            result = run(program, *flags, "--out", out, *more)
            check(result.returncode == 0, f"{name}: {result.stderr}")
            check(("bf16: products by " in result.stdout) == (out != single), f"{name}: says what makes products of bf16")
        check(tensors(mixed) == tensors(broken), f"{name}: resumption or threads changed the parameters")
        check(losses(mixed) == losses(broken), f"{name}: resumption or threads changed the metrics")
        check(tensors(mixed) != tensors(single), f"{name}: --dtype bf16 changed nothing")
        check(abs(losses(mixed)[-1] - losses(single)[-1]) < 0.05, f"{name}: {losses(mixed)[-1]} instead of {losses(single)[-1]}")
    check(len(tensors(mixed)) == len(tensors(single)), "parameters and moments must stay f32")
    check(", bf16 by " in named_tensors(mixed / "checkpoint.safetensors")[1]["instruction_set"], "what makes products of bf16 is not saved")
    refused = run(program, *flags, "--out", mixed, "--steps", 30, "--resume")
    check_refused('the run was started with dtype "bf16" but now has "f32"', refused)


def medium(program, folder):
    """--matmul-precision medium learns as f32 does, or is f32 and says so; it resumes bit for bit and is recorded."""
    flags = ["--text", write_text(folder), *TINY, "--channels", 64, "--lr", 5e-3, "--min-lr", 5e-3, "--connection", "mhc"]
    whole, broken, highest = (folder / part for part in ("whole", "broken", "highest"))
    precision = ["--matmul-precision", "medium"]
    for out, more in ((highest, ["--steps", 30]), (whole, ["--steps", 30, *precision]), (broken, ["--steps", 15, *precision]),
                      (broken, ["--steps", 30, *precision, "--resume", "--threads", 1])):
        result = run(program, *flags, "--out", out, *more)
        check(result.returncode == 0, result.stderr)
    check(tensors(whole) == tensors(broken), "resumption or threads changed the parameters")
    says_nothing_faster = "--matmul-precision medium: this processor has no faster products" in result.stdout
    check((tensors(whole) == tensors(highest)) == says_nothing_faster, "medium must change bits, or say that it does not")
    bf16 = run(program, *flags, "--steps", 5, "--dtype", "bf16", "--out", folder / "bf16")
    check(("this processor has none" in bf16.stdout) == says_nothing_faster, f"medium or bf16 is wrong of the processor: {bf16.stdout}")
    check(abs(losses(whole)[-1] - losses(highest)[-1]) < 0.05, f"{losses(whole)[-1]} instead of {losses(highest)[-1]}")
    refused = run(program, *flags, "--out", whole, "--steps", 30, "--resume")
    check_refused('the run was started with matmul_precision "medium" but now has "highest"', refused)


def gradients(program, folder):
    """--check-gradients reports errors and does not change the run."""
    text = write_text(folder)
    flags = ["--text", text, *TINY, "--lr", 5e-3, "--min-lr", 5e-3, "--connection", "mhc"]
    plain, whole, broken = folder / "plain", folder / "whole", folder / "broken"
    checked = ["--check-gradients", 8]
    for out, more in ((plain, ["--steps", 20]), (whole, ["--steps", 20, *checked]), (broken, ["--steps", 10, *checked]),
                      (broken, ["--steps", 20, *checked, "--resume", "--threads", 1])):
        result = run(program, *flags, "--out", out, *more)
        check(result.returncode == 0, result.stderr)
        check(result.stdout.count("f32 beside f64") == (0 if out == plain else 2 if out == whole else 1), "a table for each check")
    check(tensors(plain) == tensors(whole), "looking at the gradients changed the parameters")
    check(losses(plain) == losses(whole), "looking at the gradients changed the losses")
    check(not (plain / "gradients.jsonl").exists(), "a report that nobody asked for")
    text = (whole / "gradients.jsonl").read_text()
    check(text == (broken / "gradients.jsonl").read_text(), "resumption or threads changed the report")
    lines = [json.loads(line) for line in text.splitlines()]
    whole_gradient = [line for line in lines if "remainder" in line]
    check([line["step"] for line in whole_gradient] == [8, 16], "a line for each check")
    for line in whole_gradient:
        check(line["dtype"] == "f32" and 1e-9 < line["relative_error"] < 1e-4 and line["remainder"] < 1e-3, f"{line}")
    step = json.loads((whole / "metrics.jsonl").read_text().splitlines()[7])
    check(abs(whole_gradient[0]["loss"] - step["train_loss"]) < 1e-5, "the batch must be that of the step")
    norm = math.hypot(*[line["gradient"] for line in lines if "parameter" in line and line["step"] == 8])
    check(abs(norm - step["grad_norm"]) < 1e-4 * norm, f"the gradients have the norm {norm} and not {step['grad_norm']}")
    ops = {line["op"] for line in lines if "op" in line}
    check({"linear", "mhc_read", "mhc_write_read"} <= ops, f"ops {ops}")
    rows = [line for line in lines if line.get("parameter") == "blocks.0.attention.q.weight"]
    check([row["step"] for row in rows] == [8, 16], "a line for each parameter")
    check(all(row["worst_op"] in ops and row["max_ulps"] > 0 for row in rows), f"{rows}")


def blocks(program, folder):
    """Results of blocks do not depend on threads or resumption, and equal those of the whole batch up to rounding."""
    text = write_text(folder)
    flags = ["--text", text, *TINY, "--batch", 6, "--lr", 5e-3, "--min-lr", 5e-3, "--connection", "mhc"]
    outs = {name: folder / name for name in ("whole", "one", "six", "threads", "broken")}
    cases = [("whole", ["--steps", 30]), ("one", ["--steps", 30, "--blocks", 1]), ("six", ["--steps", 30, "--blocks", 6]),
             ("threads", ["--steps", 30, "--blocks", 6, "--threads", 1]), ("broken", ["--steps", 13, "--blocks", 6]),
             ("broken", ["--steps", 30, "--blocks", 6, "--resume"])]
    for name, more in cases:
        result = run(program, *flags, "--out", outs[name], *more)
        check(result.returncode == 0, f"{name}: {result.stderr}")
    check(tensors(outs["whole"]) == tensors(outs["one"]), "one block must be the whole batch")
    check(tensors(outs["whole"]) != tensors(outs["six"]), "six blocks round otherwise")
    for name in ("threads", "broken"):
        check(tensors(outs["six"]) == tensors(outs[name]) and losses(outs["six"]) == losses(outs[name]), f"{name} changed the bits")
    for a, b in zip(losses(outs["whole"]), losses(outs["six"])):
        check(abs(a - b) < 1e-4 * a, f"blocks changed a loss from {a} to {b}")
    check_refused("with blocks 6 but now has 3", run(program, *flags, "--out", outs["six"], "--resume", "--steps", 40, "--blocks", 3))
    check_refused("--blocks: 4 blocks do not divide a --batch of 6", run(program, *flags, "--out", folder / "new", "--blocks", 4))


def best(program, folder):
    """best.safetensors is the checkpoint of the lowest held-out loss, and a resumed run continues to compare with it."""
    text = folder / "text.txt"
    text.write_text("abcdefgh" * 68 + "hgfedcba" * 8)  # what is learned is wrong of the last tenth
    flags = ["--text", text, *TINY, "--channels", 64, "--lr", 1e-2, "--min-lr", 1e-2, "--warmup", 0, "--eval-every", 10]
    whole, broken = folder / "whole", folder / "broken"
    for out, more in ((whole, ["--steps", 300]), (broken, ["--steps", 200]), (broken, ["--steps", 300, "--resume"])):
        result = run(program, *flags, "--out", out, *more)
        check(result.returncode == 0, result.stderr)
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    held_out = {line["step"]: line["val_loss"] for line in lines if "val_loss" in line}
    step = min(held_out, key=held_out.get)
    check(step < 200, f"the held-out loss must rise in the end: {held_out}")
    for out in (whole, broken):
        _, metadata = named_tensors(out / "best.safetensors")
        check((int(metadata["step"]), float(metadata["best_held_out"])) == (step, held_out[step]), f"{out.name}: {metadata}")
        _, metadata = named_tensors(out / "checkpoint.safetensors")
        check((int(metadata["step"]), float(metadata["best_held_out"])) == (300, held_out[step]), f"{out.name}: {metadata}")
    check(named_tensors(whole / "best.safetensors")[0] == named_tensors(broken / "best.safetensors")[0], "the best model differs")
    (broken / "best.safetensors").rename(broken / "checkpoint.safetensors")  # to go on from there
    result = run(program, *flags, "--out", broken, "--steps", 300, "--resume")
    check(f"resumed at step {step}" in result.stdout and result.returncode == 0, f"{result.stdout} {result.stderr}")
    check(tensors(broken) == tensors(whole), "the best checkpoint led elsewhere")


def upcycling(program, folder):
    """--init puts the weights of a run into other connections: the held-out loss is the same, and training continues from it."""
    text, source = write_text(folder), folder / "source"
    flags = ["--text", text, *TINY, "--eval-every", 30]
    check(run(program, *flags, "--steps", 60, "--lr", 1e-2, "--out", source).returncode == 0, "the first run failed")
    weights, _ = named_tensors(source / "checkpoint.safetensors")
    start = ["--text", text, "--init", source, "--sample", 0, "--batch", 4]

    def started(name, *more):
        result = run(program, *start, "--out", folder / name, *more)
        check(result.returncode == 0, f"{name}: {result.stderr}")
        line = json.loads((folder / name / "metrics.jsonl").read_text().splitlines()[0])
        check(set(line) == {"step", "val_loss", "init_val_loss"} and line["step"] == 0, f"{name}: {line}")
        now, before, kind = line["val_loss"], line["init_val_loss"], json.loads((folder / name / "config.json").read_text())["connection"]
        said = f"init: {source} at step 60 has the held-out loss {before:.6f}; with {kind} connections it is {now:.6f}, {now - before:+.1e}"
        check(said in result.stdout, f"{name}: '{said}' is not in {result.stdout}")
        return result, now, before, named_tensors(folder / name / "checkpoint.safetensors")[0]

    last = [json.loads(line) for line in (source / "metrics.jsonl").read_text().splitlines()][-1]["val_loss"]
    for kind, bound in {"residual": 0, "hc": 1e-6, "mhc": 1e-6, "deepseek-v4": 1e-5, "hunyuan-v4": 1e-5, "single-pass": 1e-5, "frac": 1e-6, "laurel": 1e-6,
                        "skip": 1e-3, "mhc-layer": 1e-3, "gated": 1e-3}.items():
        result, now, before, tensors_now = started(kind, "--connection", kind, "--steps", 0)
        check(before == last, f"{kind}: the source has {last} but --init says {before}")
        check(abs(now - before) <= bound * before and "change what" not in result.stdout, f"{kind}: {before} became {now}")
        check(all(tensors_now[name] == data for name, data in weights.items() if name.startswith("model.")), f"{kind}: other weights")
        check(float(named_tensors(folder / kind / "best.safetensors")[1]["best_held_out"]) == now, f"{kind}: the start is the best so far")
    result, now, before, _ = started("manifold", "--connection", "manifold", "--steps", 0)
    check(abs(now - before) > 0.01 * before and "the connections change what the model computes" in result.stdout, f"{result.stdout}")
    result, now, before, _ = started("dynamic", "--connection", "mhc", "--steps", 0, "--alpha", 1, "--phi-std", 1)
    check(abs(now - before) > 1e-3 * before, "--alpha must be heard")

    flags = ["--connection", "mhc", "--train", "connections", "--lr", 1e-2, "--min-lr", 1e-2, "--eval-every", 5]
    _, _, _, frozen = started("frozen", *flags, "--steps", 20)
    mine = [name for name in frozen if ".connection." in name]
    settings = json.loads((folder / "frozen/config.json").read_text())
    check((settings["train"], settings["init"]) == ("connections", str(source)), f"{settings}")
    check(len(mine) == 3 * 2 * 3, f"parameters and moments of connections alone are trained: {mine}")
    for name, data in weights.items():
        check(not name.startswith("model.") or frozen[name] == data, f"{name} changed")
    _, _, _, start_of_mhc = started("start", "--connection", "mhc", "--steps", 0)
    for name, data in start_of_mhc.items():
        check(".connection." not in name or frozen[name] != data, f"{name} did not learn")
    _, _, _, broken = started("broken", *flags, "--steps", 8)
    result = run(program, *start, *flags, "--steps", 20, "--out", folder / "broken", "--resume")
    check(result.returncode == 0 and "init:" not in result.stdout, f"{result.stdout} {result.stderr}")
    check(tensors(folder / "broken") == tensors(folder / "frozen"), "resumption changed the bits")
    metrics = (folder / "broken/metrics.jsonl").read_text().splitlines()
    check([json.loads(line)["step"] for line in metrics] == list(range(21)), "metrics.jsonl lost or repeated steps")
    for checkpoint in (folder / "broken").glob("*.safetensors"):
        checkpoint.unlink()
    result = run(program, *start, *flags, "--steps", 20, "--out", folder / "broken", "--resume")
    check(result.returncode == 0 and "init:" in result.stdout, f"{result.stdout} {result.stderr}")
    check(tensors(folder / "broken") == tensors(folder / "frozen"), "a run that starts again differs")

    source = folder / "frozen"  # whose connections have learned
    start[3] = source / "checkpoint.safetensors"
    for name, more in ("again", ["--connection", "mhc"]), ("default", []), ("other", ["--streams", 2]):
        result = run(program, *start, *more, "--steps", 0, "--out", folder / name)
        line = json.loads((folder / name / "metrics.jsonl").read_text())
        check(result.returncode == 0 and "with mhc connections" in result.stdout, f"{name}: {result.stdout} {result.stderr}")
        check((line["val_loss"] == line["init_val_loss"]) == (name != "other"), f"connections of the same kind stay: {name} {line}")
        check(json.loads((folder / name / "config.json").read_text())["streams"] == (2 if more[:1] == ["--streams"] else 4), name)

    # Maps that come along do not start from --alpha and --phi-std; others do.
    def initial(name):
        settings = json.loads((folder / name / "config.json").read_text())
        return settings["alpha"], settings["phi_std"]

    start[3] = folder / "dynamic"
    result = run(program, *start, "--connection", "mhc", "--steps", 0, "--out", folder / "kept")
    check(result.returncode == 0, result.stderr)
    check(initial("kept") == (1, 1), f"{initial('kept')}")
    kept = [*start, "--connection", "mhc", "--out", folder / "kept", "--resume"]
    check(run(program, *kept, "--steps", 2).returncode == 0 and initial("kept") == (1, 1), "the resumed run has other settings")
    check_refused("started with alpha 1.0 but now has 0.5", run(program, *kept, "--steps", 2, "--alpha", 0.5))
    result = run(program, *start, "--connection", "mhc", "--streams", 2, "--steps", 0, "--out", folder / "fewer")
    check(result.returncode == 0, result.stderr)
    check(initial("fewer") == (0, 0.02), f"{initial('fewer')}")
    # So do maps of another mixing, even if their parameters have the same shapes.
    result = run(program, *start, "--connection", "mhc", "--mixing", "newton", "--steps", 0, "--out", folder / "newton")
    check(result.returncode == 0 and initial("newton") == (0, 0.02), f"{initial('newton')} {result.stderr}")
    for flag in "--alpha", "--phi-std":
        check_refused(f"{flag}: has no effect, since --init brings trained maps, which started with 1",
                      run(program, *start, "--connection", "mhc", flag, 0.5, "--out", folder / "new"))

    run(program, *start, "--connection", "layer-scale", "--scale-init", 0.5, "--steps", 0, "--out", folder / "scaled")
    check_refused("--scale-init: has no effect, since --init brings trained maps, which started with 0.5",
                  run(program, *start, "--init", folder / "scaled", "--scale-init", 0.25, "--out", folder / "new"))

    # A text that lacks characters of the model has the model's ids.
    more = folder / "more.txt"
    more.write_text("A" + text.read_text()[1:])  # the first letter but for the blank
    check(run(program, *TINY, "--text", more, "--steps", 9, "--out", folder / "more").returncode == 0, "a capital letter")
    start[3] = folder / "more"
    result = run(program, *start, "--steps", 0, "--out", folder / "subset")
    losses = [json.loads((folder / name / "metrics.jsonl").read_text().splitlines()[-1])["val_loss"] for name in ("subset", "more")]
    check(result.returncode == 0 and losses[0] == losses[1], f"{losses} {result.stdout} {result.stderr}")
    alphabets = [named_tensors(folder / name / "checkpoint.safetensors")[1]["alphabet"] for name in ("subset", "more")]
    check(alphabets[0] == alphabets[1] and alphabets[0].startswith(" A"), f"{alphabets}")
    check(run(program, *start, "--steps", 3, "--out", folder / "subset", "--resume").returncode == 0, "not resumed")
    check(run(program, *start[2:], "--steps", 0, "--out", folder / "same-text").returncode == 0, "--init without --text")
    learned, its = (json.loads((run_folder / "config.json").read_text())["text"] for run_folder in (folder / "same-text", pathlib.Path(start[3])))
    check(learned == its != "", f"--init without --text learns {learned}, not {its}")

    first_values = folder / "first-values"
    mixing = ["--layers", 2, *TINY[2:], "--value-residual", "--steps", 5, "--out", first_values]
    check(run(program, "--text", text, *mixing).returncode == 0, "--value-residual failed")
    start[3] = first_values
    check(run(program, *start, "--steps", 0, "--out", folder / "mixing").returncode == 0, "--init of a run with --value-residual failed")
    line = json.loads((folder / "mixing/metrics.jsonl").read_text())
    check(line["val_loss"] == line["init_val_loss"], f"first values are mixed in otherwise: {line}")
    weights_now, _ = named_tensors(folder / "mixing/checkpoint.safetensors")
    check("model.blocks.1.attention.value_weights" in weights_now, "value_weights are missing")
    generated = run(pathlib.Path(program).parent / "generate", "--run", folder / "mixing", "--tokens", 5)
    check(generated.returncode == 0, generated.stderr)

    new = folder / "new"
    other = folder / "other.txt"
    other.write_text("abc\u00dc" * 500)
    (folder / "ids.bin").write_bytes(bytes(5000))
    empty = folder / "empty"
    empty.mkdir()
    start[3] = folder / "source"
    for expected, case in [
            ("--tokenizer: must be UTF-8 but is '?'", ["--text", text, "--tokenizer", os.fsdecode(b"\xff")]),
            ("--text: must be UTF-8 but is '?'", ["--text", os.fsdecode(b"\xff")]),
            ("--text: '\u00dc' (U+00DC) in line 1 is none of the 27 characters of the model", [*start, "--text", other, "--steps", 5]),
            ("source does not read the tokens of the text", [*start, "--text", folder / "ids.bin", "--steps", 5]),
            ("--layers: the model of --init has 1 but the command line says 2", [*start, "--layers", 2]),
            ("--value-residual: the model of --init has none", [*start, "--value-residual"]),
            ("none: there is no such folder or file", ["--text", text, "--init", folder / "none"]),
            ("empty: holds neither the checkpoint of a run nor", ["--text", text, "--init", empty]),
            ("--steps: must be at least 1 without --init but is 0", ["--text", text, "--steps", 0]),
            ("--train: some not in {all,connections}", ["--text", text, "--train", "some"])]:
        check_refused(expected, run(program, *case, "--out", new))
    check(not new.exists(), "a folder was made for a run that was refused")


def pretrained(program, folder):
    """--init takes models as Hugging Face saves them, whose architecture the run keeps."""
    models = pathlib.Path(__file__).parents[1] / "golden/models"
    ids = folder / "ids.bin"
    random.seed(3)
    ids.write_bytes(struct.pack("<4000H", *(random.randrange(8) for _ in range(4000))))
    flags = ["--text", ids, "--context", 8, "--batch", 4, "--sample", 0, "--connection", "mhc", "--lr", 1e-3, "--min-lr", 1e-3,
             "--warmup", 0]
    for model in ("gpt2", "llama", "llama-tied", "qwen3"):
        source, zero, whole, broken = models / model, folder / f"{model}-0", folder / f"{model}-whole", folder / f"{model}-broken"
        for out, more in ((zero, ["--steps", 0]), (whole, ["--steps", 12]), (broken, ["--steps", 5]), (broken, ["--steps", 12, "--resume"])):
            result = run(program, *flags, "--init", source, "--out", out, *more)
            check(result.returncode == 0, f"{model}: {result.stderr}")
            check("--resume" in more or f"init: {source} has the held-out loss " in result.stdout, f"{model}: {result.stdout}")
        line = json.loads((zero / "metrics.jsonl").read_text())
        check(abs(line["val_loss"] - line["init_val_loss"]) < 1e-6 * line["val_loss"], f"{model}: {line}")
        check(tensors(whole) == tensors(broken), f"{model}: resumption changed the bits")
        check(losses(whole)[-1] < losses(whole)[0], f"{model}: the loss must fall: {losses(whole)}")
        again = folder / f"{model}-again"  # from the run, whose checkpoint has the architecture
        result = run(program, *flags, "--init", whole, "--steps", 0, "--out", again)
        line = json.loads((again / "metrics.jsonl").read_text())
        check(result.returncode == 0 and line["val_loss"] == line["init_val_loss"], f"{model}: {line} {result.stderr}")
    text, new = write_text(folder), folder / "new"
    result = run(program, *flags[:8], "--init", models / "deepseek-v4-window", "--steps", 0, "--out", folder / "own")
    check(result.returncode == 0, f"a model with connections of its own: {result.stderr}")
    check(json.loads((folder / "own/config.json").read_text())["connection"] == "deepseek-v4", "config.json has another connection")
    for expected, case in [
            ("--connection: the model of --init has hyper-connections of its own", ["--init", models / "deepseek-v4-window"]),
            ("reads tokens: give --tokenizer, or a --text of them that ends in .bin", ["--text", text]),
            ("--context: 33 tokens are more than the 32 that the pretrained model reads", ["--context", 33]),
            ("--experts: a pretrained model has the MLPs or experts that it has", ["--experts", 2]),
            ("the model of --init has", ["--channels", 8])]:
        check_refused(expected, run(program, *flags, "--init", models / "gpt2", *case, "--out", new))
    check(not new.exists(), "a folder was made for a run that was refused")


def bad_input(program, folder):
    text, out = write_text(folder), folder / "run"
    flags = ["--text", text, *TINY, "--connection", "mhc", "--phi-std", 0.5, "--steps", 10, "--out", out]
    check(run(program, *flags).returncode == 0, "the good run failed")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    short = folder / "short.txt"
    short.write_text("too short")
    no_text = folder / "no_text.txt"
    no_text.write_bytes("é".encode() + b"b\xffc" * 100)
    (folder / "ids.bin").write_bytes(struct.pack("<4000H", *range(0, 60000, 15)))  # 59,986 ids
    new = folder / "new"
    cases = [
        ("none.txt is not a file", ["--text", folder / "none.txt", "--out", new]),
        (f"--out: {text} is not a folder: it is something else", ["--text", text, "--out", text / "run"]),
        (f"--text: {pathlib.Path.cwd()}/none.txt is not a file that can be read", ["--text", "none.txt", "--out", new]),
        (f"{pathlib.Path.cwd()}/none.bin: cannot be opened: ", ["--text", "none.bin", "--out", new]),
        ("--text: must be UTF-8 but no character starts at offset 3 with byte 0xFF", ["--text", no_text, "--out", new]),
        ("9 characters are too few", ["--text", short, "--out", new]),
        ("3 heads do not divide 10 channels", ["--text", text, "--channels", 10, "--heads", 3, "--out", new]),
        ("--text: /none/a  b c d\u00a0~ is not a file", ["--text", "/none/a\x1f b\x7fc\x9fd\u00a0~", "--out", new]),
        ("take at least 6.35e+05 GB but ", ["--text", folder / "ids.bin", *TINY, "--connection", "mhc", "--streams", 64, "--layers", 1000,
                                            "--batch", 2**24, "--blocks", 4, "--out", new]),
        ("take at least 6.87e+04 GB but ", ["--text", text, *TINY, "--connection", "residual", "--layers", 1000, "--batch", 2**24, "--blocks", 4, "--out", new]),
        ("take at least 5.28e+04 GB but ", ["--text", text, *TINY, "--connection", "mhc", "--train", "connections", "--channels", 2**20, "--out", new]),
        ("2^64 - 1 but is '9" + "x" * 76 + "...'", ["--seed=9" + "x" * 99, "--out", new]),
        ("--warmup: 11 steps are more than --steps 10", ["--warmup", 11, "--steps", 10, "--out", new]),
        ("--min-lr: 0.01 exceeds --lr 0.001", ["--min-lr", 0.01, "--out", new]),
        ("--experts-per-token: 5 are more than --experts 4", ["--experts", 4, "--experts-per-token", 5, "--out", new]),
        ("--experts-per-token: has no effect without --experts", ["--experts-per-token", 3, "--out", new]),
        ("--depth-block: has no effect with connection residual", ["--depth-block", 2, "--steps", 0, "--out", new]),
        ("--train: residual connections have no parameters", ["--text", text, "--train", "connections", "--out", new]),
        ("--check-gradients: Value -1 not in range", ["--check-gradients", -1, "--out", new]),
        ("--check-gradients: compares gradients of f32", ["--check-gradients", 5, "--dtype", "bf16", "--out", new]),
        ("--dtype: f64 not in {f32,bf16}", ["--dtype", "f64", "--out", new]),
        ("--matmul-precision: portable bits need highest but it is medium", ["--bits", "portable", "--matmul-precision", "medium", "--out", new]),
        ("--resume: the run is at step 10 already, past --steps 5", [*flags, "--steps", 5, "--resume"]),
        ("--color", ["--color", "red", "--out", new]),
        ("--steps", ["--steps", "many", "--out", new]),
        ("--layers", ["--layers", 0, "--out", new]),
        ("frac, layer-scale, rezero, laurel but is 'mch'", ["--connection", "mch", "--out", new]),
        ("rows, diagonal, identity but is 'sinkhorm'", ["--connection", "mhc", "--mixing", "sinkhorm", "--out", new]),
        ("kronecker supports n = 1, 2, 4, 8, .. but n is 3",
         ["--connection", "mhc", "--mixing", "kronecker", "--streams", 3, "--out", new]),
        ("quaternion supports n = 4 but n is 8", ["--connection", "mhc", "--mixing", "quaternion", "--streams", 8, "--out", new]),
        ("permutations supports 1 <= n <= 6", ["--connection", "mhc", "--mixing", "permutations", "--streams", 9, "--out", new]),
        ("one of own, mean, sum, weighted, softmax, gated, attention but is 'last'", ["--connection", "mhc", "--head", "last", "--out", new]),
        ("--streams: Value 0 not in range", ["--connection", "mhc", "--streams", 0, "--out", new]),
        ("expansion 3", ["--text", text, *TINY, "--connection", "manifold", "--streams", 3, "--out", new]),
        ("--sinkhorn-iterations", ["--connection", "mhc", "--sinkhorn-iterations", 0, "--out", new]),
        ("--phi-std", ["--connection", "mhc", "--phi-std", -1, "--out", new]),
        ("one of residual, hc, mhc but is 'free'", ["--connection", "skip", "--skip-mode", "free", "--out", new]),
        ("one of simplex, identity, doubly_stochastic but is 'ball'", ["--skip-constraint", "ball", "--out", new]),
        ("one of identity, uniform, zeros but is 'random'", ["--skip-init", "random", "--out", new]),
        ("one of forward, post_step, none but is 'late'", ["--skip-projection", "late", "--out", new]),
        ("epsilon must be in [0, 1) but is 1", ["--skip-constraint", "identity", "--skip-epsilon", 1, "--out", new]),
        ("temperature must be > 0 but is -1", ["--skip-temperature", -1, "--out", new]),
        ("--max-history", ["--connection", "skip", "--max-history", 0, "--out", new]),
        ("multiple of fractions 5", ["--text", text, *TINY, "--connection", "frac", "--fractions", 5, "--out", new]),
        ("--depth-block", ["--connection", "attention-residual", "--depth-block", 0, "--out", new]),
        ("--laurel-rank: Value 0 not in range", ["--connection", "laurel", "--laurel-rank", 0, "--out", new]),
        ("rank must be in [1, ", ["--text", text, *TINY, "--connection", "laurel", "--laurel-rank", 4096, "--out", new]),
        ("--scale-init: must be a finite number", ["--text", text, *TINY, "--connection", "layer-scale", "--scale-init", "inf", "--out", new]),
        ("holds a run", flags),
        ("holds no run", ["--text", text, *TINY, "--resume", "--out", new]),
        ("with seed 1 but now has 7; to train on with other settings, ", [*flags, "--resume", "--seed", 7]),
        ("with batch 4 but now has 2, clip 1.0 but now has 0.5, min_lr 0.0001 but now has 0.0002, seed 1 but now has 7; to train on with ",
         [*flags, "--resume", "--seed", 7, "--batch", 2, "--min-lr", 2e-4, "--clip", 0.5]),
        ("with phi_std 0.5 but now has 0.25", [*flags, "--resume", "--phi-std", 0.25]),
        ('with connection "mhc" but now has "hc"', [*flags, "--resume", "--connection", "hc", "--phi-std", 0.02]),
    ]
    for expected, case in cases:
        check_refused(expected, run(program, *case))
    checkpoint = out / "checkpoint.safetensors"
    for damaged in (before[checkpoint.name][:-3], before[checkpoint.name][:40], b"", b"\xff" * 64):
        checkpoint.write_bytes(damaged)
        check_refused("checkpoint.safetensors", run(program, *flags, "--resume"))
        check(checkpoint.read_bytes() == damaged, "the damaged checkpoint was touched")
    checkpoint.write_bytes(before[checkpoint.name])
    check(before == {p.name: p.read_bytes() for p in out.iterdir()}, "files of the existing run changed")
    check(not new.exists(), "a folder was made for a run that was refused")


def nonfinite(program, folder):
    text = write_text(folder)
    base = ["--text", text, *TINY, "--steps", 40, "--checkpoint-every", 1, "--eval-every", 100, "--warmup", 0, "--lr", "1e30"]
    result = run(program, *base, "--out", folder / "stop")
    check(result.returncode == 3 and result.stderr.count("\n") == 1, f"exit code {result.returncode}: {result.stderr}")
    check("train_lm: step " in result.stderr and "is not finite" in result.stderr and "--lr" in result.stderr, result.stderr)
    floats = struct.iter_unpack("<f", tensors(folder / "stop")[:4 * (len(tensors(folder / "stop")) // 4)])
    check(all(value == value and abs(value) != float("inf") for (value,) in floats), "the checkpoint is not finite")
    allow = [*base, "--weight-decay", "1e30", "--out", folder / "allow"]
    check(run(program, *allow, "--allow-nonfinite").returncode == 3, "such weights have no finite loss")
    check_refused(" is not finite; --allow-nonfinite continues nevertheless", run(program, *allow, "--resume"))
    result = run(program, *allow, "--resume", "--allow-nonfinite")
    check(result.returncode == 3 and "resumed at step 1" in result.stdout, f"{result.stdout} {result.stderr}")
    result = run(program, *base, "--out", folder / "skip", "--on-nonfinite", "skip")
    check("skipped: " in result.stdout and "is not finite" in result.stdout, result.stdout)
    check(result.returncode == 3 and "step 40: the held-out loss is not finite" in result.stderr, result.stderr)


if __name__ == "__main__":
    program, case = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        if case != "outputs":
            without_pictures(pathlib.Path(name))
        {"outputs": outputs, "connections": connections, "optimizers": optimizers, "gradients": gradients, "mixed": mixed, "medium": medium, "blocks": blocks, "best": best,
         "upcycling": upcycling, "pretrained": pretrained, "bad-input": bad_input, "nonfinite": nonfinite}[case](program, pathlib.Path(name))
