#!/usr/bin/python3 -B
"""Damages, moves and interrupts runs of train_lm: train_lm_folder_test.py PROGRAM {integrity|files|changes|shell|signals|earlier|rewound|kill}"""
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from program import check, check_refused, run, write_text
from tiny_run import TINY, tensors


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
        check(result.returncode == 0 and "resumed at step 10" in result.stdout, f"{damage}: {result.stdout} {result.stderr}")
        said = re.search(rf"^(.+; )?continuing from {previous}$", result.stdout, re.MULTILINE)
        check(said and (said[1] is None) == (damage == "remove"), f"{damage} is not the reason given: {result.stdout}")
        check(tensors(out) == final, f"{damage}: the older checkpoint led elsewhere")
    config = (out / "config.json").read_bytes()
    other = folder / "other.txt"
    other.write_text(text.read_text()[::-1])  # of equal length, with the same characters
    check_refused(f"another text: {text} but now {other}; --text names it", run(program, *flags, "--resume", "--text", other))
    check_refused("with lr 0.001 but now has 0.002, seed 1 but now has 2, another text: ",
                  run(program, *flags, "--resume", "--text", other, "--lr", 2e-3, "--seed", 2))
    check_refused("but now has 2; to train on with other settings, start a run from it with --init\n",
                  run(program, *flags, "--resume", "--seed", 2))
    for path in whole:
        path.unlink()
    check_refused("another text", run(program, *flags, "--resume", "--text", other))
    check_refused("with seed 1 but now has 2", run(program, *flags, "--resume", "--seed", 2))
    check((out / "config.json").read_bytes() == config, "config.json was rewritten")
    metrics = out / "metrics.jsonl"
    lines = metrics.read_text()
    for number, bad in enumerate(('{"step": "one"}', "[1]", "1", "nonsense", '{"step": 1.5}', "{}"), start=1):
        aside = out / f"metrics.jsonl.damaged{'' if number == 1 else f'-{number}'}"
        metrics.write_text(f"{bad}\n{lines}")
        result = run(program, *flags, "--resume")
        expected = f"metrics.jsonl: line 1 must be an object with an integer step; it is {aside.name} now, and the run goes on without it\n"
        check(result.returncode == 0 and expected in result.stdout, f"{bad}: {result.stdout} {result.stderr}")
        check(aside.read_text() == f"{bad}\n{lines}", f"{bad}: lines were lost")
    for path in out.glob("*.safetensors"):
        path.unlink()
    for bad in ("[]", "{}", '{"text_checksum": ""}'):
        (out / "config.json").write_text(bad)
        check_refused("config.json: must be the configuration of a run", run(program, *flags, "--resume"))


def limited(what, limit):
    return {"preexec_fn": lambda: resource.setrlimit(what, (limit, resource.getrlimit(what)[1]))}


def files(program, folder):
    """Other files in place of a run's files, and limits of the process, give one line; a run never starts over another."""
    text, out = write_text(folder), folder / "run"
    flags = ["--text", text, *TINY, "--checkpoint-every", 1, "--steps", 10, "--out", out]
    check(run(program, *flags).returncode == 0, "the good run failed")
    config, metrics = out / "config.json", out / "metrics.jsonl"
    before, lines = config.read_bytes(), metrics.read_text()
    metrics.unlink()
    os.mkfifo(metrics)  # whoever opened it would wait for a writer
    result = run(program, *flags, "--resume")
    check(result.returncode == 0 and f"{metrics}: must be a regular file but is something else; it is metrics.jsonl.damaged now" in
          result.stdout, result.stdout + result.stderr)
    metrics.write_text(lines)
    os.truncate(metrics, len(lines) - 1)
    result = run(program, *flags, "--resume")
    check(f"{metrics}: lines are missing: the last one is of step 9 but the checkpoint is of step 10\n" in result.stdout, result.stdout)
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
    check(run(program, *flags, "--resume").returncode == 0, "not resumed by the checkpoint")
    now, known = json.loads(config.read_text()), json.loads(before)
    check(now.pop("starts")[0]["step"] == 10 and known.pop("starts")[0]["step"] == 0 and now == known, "resumed by the checkpoint")
    for checkpoint in out.glob("*.safetensors"):
        checkpoint.unlink()
    config.unlink()
    check_refused("holds other results", run(program, *flags))
    check(metrics.read_text() == lines, "metrics.jsonl was touched")
    os.mkfifo(config)
    check_refused(f"{config}: must be a regular file", run(program, *flags, "--resume"))
    closed = [*flags[:-1], folder / "closed"]  # no file becomes stdout where that is closed
    check_refused("stdout: could not be written to its end", run(program, *closed, preexec_fn=lambda: os.closerange(0, 2)))
    check([json.loads(line)["step"] for line in (folder / "closed/metrics.jsonl").read_text().splitlines()] == list(range(1, 11)), "lines of stdout")
    small = [*flags[:-1], folder / "small"]
    check_refused("File too large", run(program, *small, **limited(resource.RLIMIT_FSIZE, 4096)))
    check((folder / "small/config.json").exists(), "it ended too early")
    no_threads = limited(resource.RLIMIT_STACK, 1 << 47)
    if run(program, "--help", **no_threads).returncode == 0:  # not under ThreadSanitizer
        check_refused("train_lm: ", run(program, *flags[:-1], folder / "new", **no_threads))


def changes(program, folder):
    """A token file that is cut or rewritten ends a run with one line and the last checkpoint intact; another file of its name
    does not. A run that has ended repeats nothing, leaves no lock, and a picture that fails is one line."""
    ids, good = folder / "ids.bin", random.Random(1).randbytes(40_000)

    def started(name):
        ids.write_bytes(bytes(byte % 50 if at % 2 == 0 else 0 for at, byte in enumerate(good)))
        os.utime(ids, (1e9, 1e9))
        return start_long_run(program, ids, folder / name, "--checkpoint-every", 1, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def rewritten():
        with open(ids, "r+b") as file:
            file.write(bytes(100))

    for change, expected in ((lambda: os.truncate(ids, 1000), "ids.bin: "), (rewritten, "ids.bin: has been written to since it was opened")):
        process = started(out := f"run-{expected[-3:].strip()}")
        change()
        result = subprocess.CompletedProcess([program], process.wait(timeout=60), "", process.stderr.read())
        check_refused(expected, result)
        written = ids.read_bytes()
        ids.write_bytes(bytes(byte % 50 if at % 2 == 0 else 0 for at, byte in enumerate(good)))
        step = json.loads((folder / out / "metrics.jsonl").read_text().splitlines()[-1])["step"]
        result = run(program, "--text", ids, *TINY, "--steps", step + 2, "--resume", "--out", folder / out)
        check(result.returncode == 0 and f"resumed at step {step}" in result.stdout, f"{result.stdout} {result.stderr}")
        check(written != ids.read_bytes(), "nothing was changed")
    process = started("run")
    ids.rename(folder / "old.bin")
    ids.write_bytes(b"other")
    time.sleep(0.3)
    check(process.poll() is None, "another file of the name ended the run")
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=60) == 130, "the run did not end")

    flags = ["--text", write_text(folder), *TINY, "--steps", 5, "--out", folder / "ended"]
    check(run(program, *flags).returncode == 0, "the run failed")
    before = {path.name: path.read_bytes() for path in (folder / "ended").glob("*.jsonl")}
    check(".lock" not in os.listdir(folder / "ended"), "the lock is left")
    (folder / "matplotlib.py").write_text("raise ImportError('matplotlib is\\nnot here')")
    result = run(program, *flags, "--resume", env=os.environ | {"PYTHONPATH": str(folder)})
    check(result.returncode == 0 and result.stderr.count("\n") == 1 and "plot_loss.py" in result.stderr and "not here" in result.stderr,
          result.stderr)
    check(before == {path.name: path.read_bytes() for path in (folder / "ended").glob("*.jsonl")}, "lines were repeated")


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
    process = start_long_run(program, folder / "text.txt", folder / "long", stdout=subprocess.PIPE)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    check(re.search(r"\ninterrupted at step \d+; continue with: ", said), f"no command that continues: {said}")


def start_long_run(program, text, out, *flags, **options):
    command = [program, "--text", text, *TINY, "--steps", 100000, "--checkpoint-every", 100000, *flags, "--out", out]
    process = subprocess.Popen(list(map(str, command)), text=True, **options)
    while not (out / "metrics.jsonl").exists() or (out / "metrics.jsonl").read_text().count("\n") < 5:
        check(process.poll() is None, "the run ended early")
        time.sleep(0.01)
    return process


def signals(program, folder):
    """Each signal saves; a closed stdout does not stop a run; one process per folder."""
    text = write_text(folder)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        out = folder / f"it's {number.name}"
        process = start_long_run(program, text, out, stdout=subprocess.PIPE)
        check_refused(f"--out: {out} is in use by another process", run(program, "--text", text, *TINY, "--resume", "--out", out))
        process.send_signal(number)
        stdout, _ = process.communicate(timeout=60)
        check(process.returncode == 130 and "interrupted at step" in stdout, f"{number.name}: {process.returncode} {stdout}")
        command = next(line for line in stdout.splitlines() if line.startswith("interrupted at step")).partition("continue with: ")[2]
        check(shlex.split(command) == [*process.args, "--resume"], f"the command that continues: {command}")
        check("picture: " not in stdout[:stdout.index("interrupted at step")], f"the line comes as soon as the state is saved: {stdout}")
        check((out / "checkpoint.safetensors").exists(), f"{number.name}: nothing was saved")
        check(f"picture: {out}/loss.png\n" in stdout, f"{number.name}: no picture of the steps so far: {stdout}")
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
    check(result.returncode == 2 and result.stderr == "train_lm: stdout: could not be written to its end\n", result.stderr)
    check((folder / "full/checkpoint.safetensors").exists(), "a full stdout lost the checkpoint")


def earlier(program, folder):
    """Runs that releases before this one left (runs/README.md) go on, with the losses that those releases would have had."""
    runs = pathlib.Path(__file__).resolve().parent / "runs"
    names = sorted(path.parent for path in runs.glob("*/*/next_losses.json"))
    check(len(names) >= 4, f"runs of earlier releases: {names}")
    for source in names:
        name, out = str(source.relative_to(runs)), folder / source.relative_to(runs)
        shutil.copytree(source, out)
        flags = json.loads((source / "flags.json").read_text())
        result = run(program, "--text", runs / "text.txt", *flags, "--steps", 20, "--resume", "--allow-other-processor", "--out", out)
        check(result.returncode == 0 and "resumed at step 10" in result.stdout, f"{name}: {result.stdout} {result.stderr}")
        check("damaged" not in result.stdout + result.stderr, f"{name}: {result.stdout} {result.stderr}")
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        check([line["step"] for line in lines] == list(range(1, 21)), f"{name}: steps are lost or repeated")
        for line, expected in zip(lines[10:], json.loads((source / "next_losses.json").read_text()), strict=True):
            check(abs(line["train_loss"] - expected) < 1e-4, f"{name}: step {line['step']}: {line['train_loss']} but was {expected}")


def rewound(program, folder):
    """Lines of steps that are taken again are there once, and temporary files of killed runs are gone after a start."""
    flags = ["--text", write_text(folder), *TINY, "--connection", "mhc", "--lr", 5e-3, "--min-lr", 5e-3, "--eval-every", 10,
             "--checkpoint-every", 10, "--telemetry-every", 5, "--check-gradients", 7, "--ledger", "--report"]
    whole, broken, less = folder / "whole", folder / "broken", folder / "less"

    def train(out, *more):
        out.mkdir(exist_ok=True)
        left = [out / f"{name}.0123456789abcdef.tmp" for name in ("config.json", "checkpoint.next.safetensors")]
        for path in left:
            path.write_text("half")
        result = run(program, *flags, *more, "--out", out)
        check(result.returncode == 0, result.stderr)
        check(not any(path.exists() for path in left), f"temporary files stay: {os.listdir(out)}")
        lines = {path.name: list(map(json.loads, path.read_text().splitlines())) for path in out.glob("*.jsonl")}
        for line in lines["metrics.jsonl"]:
            line.pop("tokens_per_s")
        return lines

    expected = train(whole, "--steps", 30)
    check(len(expected) == 5 and [line["step"] for line in expected["samples.jsonl"]] == [10, 20, 30], f"files {list(expected)}")
    check([line["loss"] for line in expected["ledger.jsonl"]] == [line["train_loss"] for line in expected["metrics.jsonl"]], "losses")
    for out, last, more in ((broken, 30, []), (less, 12, ["--sample", 0])):
        train(out, "--steps", 20)
        (out / "checkpoint.safetensors").unlink()  # go on from step 10
        again = train(out, "--steps", last, "--resume", *more)
        for name, lines in expected.items():
            if out == broken:
                check(again[name] == lines, f"{name} has steps {[line['step'] for line in again[name]]}")
            check(all(line["step"] <= last for line in again[name]), f"{name} has steps that were not taken")


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
        {"integrity": integrity, "files": files, "changes": changes, "shell": shell, "signals": signals, "earlier": earlier,
         "rewound": rewound, "kill": kill}[case](program, pathlib.Path(name))
