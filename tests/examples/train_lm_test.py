#!/usr/bin/python3 -B
"""Runs train_lm as a user would: train_lm_test.py PROGRAM {outputs|connections|gradients|bad-input|integrity|nonfinite|files|shell|signals|kill}"""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from program import check, check_refused, run, write_text

TINY = ["--layers", "1", "--channels", "16", "--heads", "2", "--context", "16", "--batch", "4", "--warmup", "5", "--sample", "20"]


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
    head = subprocess.run(["git", "-C", pathlib.Path(program).parent, "rev-parse", "HEAD"], capture_output=True, text=True)
    check(config["git_commit"] == (head.stdout.strip() or "unknown"), f"config.json has the commit {config['git_commit']}")
    check((out / "loss.png").read_bytes().startswith(b"\x89PNG"), "loss.png is no picture")
    check(not [p for p in out.iterdir() if "tmp" in p.name], "a temporary file is left")
    again = run(program, "--text", text, *TINY, "--steps", 120, "--out", folder / "again", "--threads", 1)
    check(again.returncode == 0, again.stderr)
    check(tensors(out) == tensors(folder / "again"), "another number of threads changed the parameters")


def shell(program, folder):
    """A folder whose name is a command is a folder; a packed commit and that of a worktree are found."""
    copy = folder / "quote'; touch wrong; '" / "bin"
    copy.mkdir(parents=True)
    copied = shutil.copy(program, copy)
    git, commit = copy.parent / ".git", "0123456789" * 4

    def commit_seen(name):
        result = subprocess.run([copied, "--text", write_text(folder), *TINY, "--steps", "5", "--out", folder / name], capture_output=True,
                                text=True, cwd=folder)
        check(result.returncode == 0 and not (folder / "wrong").exists(), f"{name}: {result.stderr}")
        return json.loads((folder / name / "config.json").read_text())["git_commit"]

    check(commit_seen("outside") == "unknown", "a commit outside a checkout")
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{commit} refs/heads/main\n")
    check(commit_seen("packed") == commit, "the packed commit was not found")
    for head in (b"\xff\xfe\n", b"deadbeef, not quite\n"):
        (git / "HEAD").write_bytes(head)
        check(commit_seen(f"damaged-{head[0]}") == "unknown", f"{head} was taken for a commit")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    git.rename(folder / "main.git")
    (folder / "main.git/worktree").mkdir()
    (folder / "main.git/worktree/HEAD").write_text("ref: refs/heads/main\n")
    (folder / "main.git/worktree/commondir").write_text("..\n")
    git.write_text(f"gitdir: {folder}/main.git/worktree\n")
    check(commit_seen("worktree") == commit, "the commit of the worktree was not found")


def tensors(out):
    """The bytes of all tensors of a run's checkpoint; the header may differ in order or configuration."""
    data = (out / "checkpoint.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return data[8 + length:]


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


def gradients(program, folder):
    """--check-gradients reports and changes nothing."""
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
    loss = json.loads((whole / "metrics.jsonl").read_text().splitlines()[7])["train_loss"]
    check(abs(whole_gradient[0]["loss"] - loss) < 1e-5, "the batch must be that of the step")
    ops = {line["op"] for line in lines if "op" in line}
    check({"linear", "mhc_read", "mhc_write_read"} <= ops, f"ops {ops}")
    rows = [line for line in lines if line.get("parameter") == "blocks.0.attention.q.weight"]
    check([row["step"] for row in rows] == [8, 16], "a line for each parameter")
    check(all(row["worst_op"] in ops and row["max_ulps"] > 0 for row in rows), f"{rows}")


def losses(out):
    return [json.loads(line)["train_loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def bad_input(program, folder):
    text, out = write_text(folder), folder / "run"
    flags = ["--text", text, *TINY, "--connection", "mhc", "--phi-std", 0.5, "--steps", 10, "--out", out]
    check(run(program, *flags).returncode == 0, "the good run failed")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    short = folder / "short.txt"
    short.write_text("too short")
    no_text = folder / "no_text.txt"
    no_text.write_bytes("é".encode() + b"b\xffc" * 100)
    new = folder / "new"
    cases = [
        ("none.txt is not a file", ["--text", folder / "none.txt", "--out", new]),
        ("--text: must be UTF-8 but no character starts at offset 3 with byte 0xFF", ["--text", no_text, "--out", new]),
        ("9 characters are too few", ["--text", short, "--out", new]),
        ("3 heads do not divide 10 channels", ["--text", text, "--channels", 10, "--heads", 3, "--out", new]),
        ("--check-gradients: Value -1 not in range", ["--check-gradients", -1, "--out", new]),
        ("--color", ["--color", "red", "--out", new]),
        ("--steps", ["--steps", "many", "--out", new]),
        ("--layers", ["--layers", 0, "--out", new]),
        ("hunyuan-v4, gated, single-pass but is 'mch'", ["--connection", "mch", "--out", new]),
        ("rows, diagonal, identity but is 'sinkhorm'", ["--connection", "mhc", "--mixing", "sinkhorm", "--out", new]),
        ("kronecker is there for n = 1, 2, 4, 8, .. but n is 3",
         ["--connection", "mhc", "--mixing", "kronecker", "--streams", 3, "--out", new]),
        ("quaternion is there for n = 4 but n is 8", ["--connection", "mhc", "--mixing", "quaternion", "--streams", 8, "--out", new]),
        ("permutations is there for 1 <= n <= 6", ["--connection", "mhc", "--mixing", "permutations", "--streams", 9, "--out", new]),
        ("one of own, mean, sum, weighted, softmax, gated but is 'last'", ["--connection", "mhc", "--head", "last", "--out", new]),
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
        ("holds a run", flags),
        ("holds no run", ["--text", text, *TINY, "--resume", "--out", new]),
        ("with seed 1 but now has 7", [*flags, "--resume", "--seed", 7]),
        ("with phi_std 0.5 but now has 0.25", [*flags, "--resume", "--phi-std", 0.25]),
        ('with connection "mhc" but now has "hc"', [*flags, "--resume", "--connection", "hc"]),
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


def flipped(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]


def integrity(program, folder, attacks=40):
    """Damaged checkpoints are refused, or the one before is used; another text or configuration is refused."""
    text, out = write_text(folder), folder / "run"
    flags = ["--text", text, *TINY, "--checkpoint-every", 10, "--steps", 20, "--out", out]
    check(run(program, *flags).returncode == 0, "the good run failed")
    last, previous = out / "checkpoint.safetensors", out / "checkpoint.previous.safetensors"
    whole = {path: path.read_bytes() for path in (last, previous)}
    rng = random.Random(1)
    for attack in range(attacks):
        for path in whole:
            path.write_bytes(flipped(whole[path], rng) if attack % 2 else whole[path][:rng.randrange(len(whole[path]))])
        check_refused("checkpoint.safetensors", run(program, *flags, "--resume"))
    last.write_bytes(whole[last])
    final = tensors(out)
    for damage in ("flip", "truncate", "remove"):
        previous.write_bytes(whole[previous])
        data = whole[last]
        last.unlink() if damage == "remove" else last.write_bytes(flipped(data, rng) if damage == "flip" else data[:-9])
        result = run(program, *flags, "--resume")
        check(result.returncode == 0 and "going on from" in result.stdout and "previous" in result.stdout and
              "resumed at step 10" in result.stdout, f"{damage}: {result.stdout} {result.stderr}")
        check(tensors(out) == final, f"{damage}: the older checkpoint led elsewhere")
    config = (out / "config.json").read_bytes()
    other = folder / "other.txt"
    other.write_text(text.read_text()[::-1])  # of equal length, with the same characters
    check_refused("another text", run(program, *flags, "--resume", "--text", other))
    for path in whole:
        path.unlink()
    check_refused("another text", run(program, *flags, "--resume", "--text", other))
    check_refused("with seed 1 but now has 2", run(program, *flags, "--resume", "--seed", 2))
    check((out / "config.json").read_bytes() == config, "config.json was rewritten")
    metrics = out / "metrics.jsonl"
    lines = metrics.read_text()
    for bad in ('{"step": "one"}', "[1]", "1", "nonsense", '{"step": 1.5}', "{}"):
        metrics.write_text(f"{bad}\n{lines}")
        check_refused("metrics.jsonl: line 1 must be an object with an integer step", run(program, *flags, "--resume"))
        check(metrics.read_text() == f"{bad}\n{lines}", "metrics.jsonl was touched")
    (out / "config.json").write_text("[]")
    check_refused("config.json", run(program, *flags, "--resume"))


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
    check_refused(" is not finite; --allow-nonfinite goes on all the same", run(program, *allow, "--resume"))
    result = run(program, *allow, "--resume", "--allow-nonfinite")
    check(result.returncode == 3 and "resumed at step 1" in result.stdout, f"{result.stdout} {result.stderr}")
    result = run(program, *base, "--out", folder / "skip", "--on-nonfinite", "skip")
    check("left out: " in result.stdout and "is not finite" in result.stdout, result.stdout)
    check(result.returncode == 3 and "step 40: the held-out loss is not finite" in result.stderr, result.stderr)


def limited(what, limit):
    return {"preexec_fn": lambda: resource.setrlimit(what, (limit, resource.getrlimit(what)[1]))}


def files(program, folder):
    """What is in the place of a run's files, and limits of the process, are one line; a run is not begun over another."""
    text, out = write_text(folder), folder / "run"
    flags = ["--text", text, *TINY, "--checkpoint-every", 1, "--steps", 10, "--out", out]
    check(run(program, *flags).returncode == 0, "the good run failed")
    config, metrics = out / "config.json", out / "metrics.jsonl"
    before, lines = config.read_bytes(), metrics.read_text()
    metrics.unlink()
    os.mkfifo(metrics)  # whoever opened it would wait for a writer
    check_refused(f"{metrics}: must be a regular file", run(program, *flags, "--resume"))
    metrics.unlink()
    metrics.write_text(lines)
    os.truncate(metrics, len(lines) - 1)
    result = run(program, *flags, "--resume")
    check(f"{metrics}: lines are missing: the last one is of step 9 but the checkpoint of step 10\n" in result.stdout, result.stdout)
    metrics.write_text(lines)
    check("lines are missing" not in run(program, *flags, "--resume").stdout, "nothing was missing")
    last, saved = out / "checkpoint.safetensors", folder / "saved"
    last.rename(saved)
    last.mkdir()
    check_refused(f"{last}: must be a regular file but is something else", run(program, *flags, "--resume"))
    last.rmdir()
    saved.rename(last)
    config.unlink()
    check_refused("holds a run", run(program, *flags))
    check(run(program, *flags, "--resume").returncode == 0 and json.loads(config.read_text()) == json.loads(before), "resumed by the checkpoint")
    for checkpoint in out.glob("*.safetensors"):
        checkpoint.unlink()
    config.unlink()
    check_refused("holds other results", run(program, *flags))
    check(metrics.read_text() == lines, "metrics.jsonl was touched")
    os.mkfifo(config)
    check_refused(f"{config}: must be a regular file", run(program, *flags, "--resume"))
    small = [*flags[:-1], folder / "small"]
    check_refused("File too large", run(program, *small, **limited(resource.RLIMIT_FSIZE, 4096)))
    check((folder / "small/config.json").exists(), "it ended too early")
    check_refused("train_lm: ", run(program, *flags[:-1], folder / "new", **limited(resource.RLIMIT_STACK, 1 << 47)))  # no thread starts


def start_long_run(program, text, out, **options):
    command = [program, "--text", text, *TINY, "--steps", "100000", "--checkpoint-every", "100000", "--out", out]
    process = subprocess.Popen(list(map(str, command)), text=True, **options)
    while not (out / "metrics.jsonl").exists() or (out / "metrics.jsonl").read_text().count("\n") < 5:
        check(process.poll() is None, "the run ended early")
        time.sleep(0.01)
    return process


def signals(program, folder):
    """Each signal saves; nobody reading stdout changes nothing; one process a folder."""
    text = write_text(folder)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        out = folder / number.name
        process = start_long_run(program, text, out, stdout=subprocess.PIPE)
        check_refused(f"--out: {out} is in use by another process", run(program, "--text", text, *TINY, "--resume", "--out", out))
        process.send_signal(number)
        stdout, _ = process.communicate(timeout=60)
        check(process.returncode == 130 and "interrupted at step" in stdout, f"{number.name}: {process.returncode} {stdout}")
        check((out / "checkpoint.safetensors").exists(), f"{number.name}: nothing was saved")
    out = folder / "pipe"
    process = start_long_run(program, text, out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    time.sleep(0.3)
    check(process.poll() is None, "a closed pipe ended training")
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=60) == 130 and (out / "checkpoint.safetensors").exists(), "a closed pipe lost the checkpoint")
    with open("/dev/full", "w") as full:
        result = subprocess.run([program, "--text", str(text), *TINY, "--steps", "10", "--out", str(folder / "full")],
                                stdout=full, stderr=subprocess.PIPE, text=True)
    check(result.returncode == 2 and result.stderr == "train_lm: stdout: not everything could be written\n", result.stderr)
    check((folder / "full/checkpoint.safetensors").exists(), "a full stdout lost the checkpoint")


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
        {"outputs": outputs, "connections": connections, "gradients": gradients, "bad-input": bad_input, "integrity": integrity, "nonfinite": nonfinite,
         "files": files, "shell": shell, "signals": signals, "kill": kill}[case](program, pathlib.Path(name))
