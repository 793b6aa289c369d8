#!/usr/bin/env python3
"""Bits of runs: the same under every instruction set with --bits portable, and compare_runs finds where others part.

BRAID_WRITE_CHECKSUMS=FILE writes the checksums of the runs to FILE."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tiny_run import TINY

TRAIN_LM, COMPARE_RUNS, SOURCES, CASE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4]
CHECKSUMS = SOURCES / "tests/bits/runs.txt"


PROGRESS = re.compile(r"^step \d+/\d+ .*\n", re.M)


def run(program, *arguments, isa=None, path=None, code=0, progress=False):
    environment = {**os.environ, **({"BRAID_ISA": isa} if isa else {}), **({"BRAID_MHC_PATH": path} if path else {})}
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, env=environment)
    assert done.returncode == code, (arguments, isa, done.returncode, done.stdout, done.stderr)
    return (done.stdout if progress else PROGRESS.sub("", done.stdout)) + done.stderr


def instruction_sets():
    said = subprocess.run([TRAIN_LM, "--steps", "1"], capture_output=True, text=True, env={**os.environ, "BRAID_ISA": "?"})
    return re.search(r"must be one of ([a-z0-9, ]+) on this", said.stderr).group(1).split(", ")


def text(folder):
    """The same on every machine: words from a linear congruential generator."""
    words, state, out = "stream mixes a sum of rows and a column to one more state\n".split(" "), 1, []
    for _ in range(4000):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(words[state // 65536 % len(words)])
    path = folder / "text.txt"
    path.write_text(" ".join(out))
    return path


def train(folder, name, *flags, isa=None, path=None, steps=20):
    out = folder / name
    run(TRAIN_LM, *TINY, "--channels", 24, "--text", text(folder), "--steps", steps, "--ledger", "--out", out, *flags, isa=isa, path=path)
    return out


def last_line(out):
    return json.loads((out / "ledger.jsonl").read_text().splitlines()[-1])


def portable(folder):
    stored = dict(reversed(line.split("  ")) for line in CHECKSUMS.read_text().splitlines()) if CHECKSUMS.exists() else {}
    sums = {}
    for connection in "residual", "mhc", "skip":
        for dtype in "f32", "bf16":
            name = f"{connection} {dtype}"
            for isa in instruction_sets():
                if isa == "baseline":
                    continue
                flags = ["--connection", connection, "--dtype", dtype, "--bits", "portable"]
                if connection == "mhc":
                    flags += ["--phi-std", 0.5, "--alpha", 0.5]
                out = train(folder, f"{connection}-{dtype}-{isa}", *flags, isa=isa)
                now = last_line(out)["parameters"]
                assert sums.setdefault(name, now) == now, (name, isa)
            if name in sums and "BRAID_WRITE_CHECKSUMS" not in os.environ:
                assert sums[name] == stored[name], (name, sums[name], stored[name])
    if sums:
        terminal, its = os.openpty()
        subprocess.run([COMPARE_RUNS, "part", out, out, "--step", "2"], stdout=its, check=True)
        said = b""
        while b" bits\r\n" not in said:
            said += os.read(terminal, 4096)
        assert re.fullmatch(rb"(\r\x1b\[Kstep 1/2 [^\r]* left\r\n){2}step 2: everything has the same bits\r\n", said), said
    if path := os.environ.get("BRAID_WRITE_CHECKSUMS"):
        pathlib.Path(path).write_text("".join(f"{its}  {name}\n" for name, its in sums.items()))


def resumed(folder):
    """A run of another processor goes on where its bits are portable, and only there."""
    sets = instruction_sets()
    if len(sets) < 2:  # the baseline has no portable bits; of two sets one is left, and the run goes on where it began
        sys.exit(77)
    whole = train(folder, "whole", "--bits", "portable")
    half = train(folder, "half", "--bits", "portable", "--warmup", 5, isa=sets[1], steps=10)
    run(TRAIN_LM, *TINY, "--channels", 24, "--text", folder / "text.txt", "--steps", 10, "--ledger", "--out", half, "--resume",
        "--bits", "portable", isa=sets[-1])
    assert last_line(half)["step"] == 10 and last_line(whole)["step"] == 20
    said = run(TRAIN_LM, *TINY, "--channels", 24, "--text", folder / "text.txt", "--steps", 12, "--out", half, "--resume", code=2)
    assert 'started with bits "portable" but now has "fast"' in said, said


def same(folder):
    a, b = train(folder, "a"), train(folder, "b")
    assert run(COMPARE_RUNS, "same", a, b) == "steps 1 to 20 have the same bits\n"
    shorter = train(folder, "shorter", steps=12)
    said = run(COMPARE_RUNS, "same", a, shorter, code=1)  # another schedule
    assert said.startswith("settings differ: steps 20 and 12\nsteps 1 to 6 have the same bits\nstep 7: parameters "), said
    settings = {run: (run / "config.json").read_text() for run in (a, b)}
    for run_of, letter in (a, "y"), (b, "z"):
        (run_of / "config.json").write_text(json.dumps(json.loads(settings[run_of]) | {"k\n\x1b[31m" + "x" * 10**6: letter * 10**6}))
    said = run(COMPARE_RUNS, "same", a, b)
    assert said.startswith("settings differ: k\\n\\u001b[31mxxx") and said.count("\n") == 2 and len(said) < 500, said[:999]
    for path, text in settings.items():
        (path / "config.json").write_text(text)
    lines = (b / "ledger.jsonl").read_text().splitlines(keepends=True)
    (b / "ledger.jsonl").write_text("".join(lines[:15]))
    said = run(COMPARE_RUNS, "same", a, b)
    assert said == f"{b}: the ledger lacks steps 16 to 20\nsteps 1 to 15, as far as both ledgers have them, have the same bits\n", said
    (b / "metrics.jsonl").unlink()  # a copy of the ledger alone
    assert run(COMPARE_RUNS, "same", a, b) == f"steps 1 to 15 have the same bits\n{a} goes on to step 20\n"
    (b / "ledger.jsonl").write_text("".join(lines[:3] + lines[4:8] + lines[10:]))  # as after two --resume without --ledger
    said = run(COMPARE_RUNS, "same", a, b)
    assert said == f"{b}: the ledger lacks steps 4, 9 to 10\nsteps 1 to 20, as far as both ledgers have them, have the same bits\n", said
    later = json.loads(lines[12]) | {"loss": 1}
    (b / "ledger.jsonl").write_text("".join(lines[5:12] + [json.dumps(later) + "\n"]))
    said = run(COMPARE_RUNS, "same", b, a, code=1)
    assert said.startswith(f"{b}: the ledger lacks steps 1 to 5\nsteps 6 to 12, as far as both ledgers have them, have the same bits\n"
                           "step 13: loss 1 against "), said
    del later["loss"]
    (b / "ledger.jsonl").write_text("".join(lines[:12] + [json.dumps(later) + "\n"]))
    assert "\nstep 13: loss null against " in run(COMPARE_RUNS, "same", b, a, code=1)
    (b / "ledger.jsonl").write_text(lines[0] + lines[0] + '{"loss": 1}\n')
    assert run(COMPARE_RUNS, "same", b, a, code=2).endswith("ledger.jsonl: line 3 must have a step\n")
    (b / "ledger.jsonl").write_text("".join(lines[:15]))
    settings = json.loads((b / "config.json").read_text())
    for key, value in ("text", 5), ("text", "x" * 5000), ("text_checksum", 7), ("starts", "x"), ("started_in", 3):  # as none writes it
        (b / "config.json").write_text(json.dumps(settings | {"text_checksum": "other", key: value}))
        assert run(COMPARE_RUNS, "same", a, b).endswith(f"steps 1 to 15 have the same bits\n{a} goes on to step 20\n"), (key, value)
    (b / "config.json").unlink()  # the ledger of another machine
    assert run(COMPARE_RUNS, "same", shorter, b, code=1).startswith("steps 1 to 6 have the same bits\n"), "settings"
    shutil.rmtree(b)
    b.mkdir()
    said = run(COMPARE_RUNS, "same", a, b, code=2)
    assert said == f"compare_runs: {b}/ledger.jsonl: there is none: the run was not trained with --ledger\n", said
    b.rmdir()
    for command, flag, value in ("same", "--step", 2), ("same", "--keep", 2), ("part", "--keep", 2), ("part", "--isa", "avx2"):
        assert run(COMPARE_RUNS, command, a, a, flag, value, code=2) == f"compare_runs: {flag}: has no effect on {command}\n", (command, flag)
    assert run(COMPARE_RUNS, "same", a, b, code=2) == f"compare_runs: {b}: there is no such folder\n", "a typing error"


def part(folder):
    a, b = train(folder, "a"), train(folder, "b", "--checkpoint-every", 6)
    assert run(COMPARE_RUNS, "part", a, b) == "steps 1 to 20 have the same bits\n"
    # What did not repeat: the ledger of b has other gradients from step 9 on.
    lines = [json.loads(line) for line in (b / "ledger.jsonl").read_text().splitlines()]
    for line in lines[8:]:
        line["gradients"] = "0" * 32
    (b / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    files = {path: path.read_bytes() for path in b.iterdir()}
    said = run(COMPARE_RUNS, "part", a, b, code=1)
    assert "steps 1 to 8 have the same bits\nstep 9: gradients differ\n" in said, said
    assert f"{b}: step 9 computed again has other bits than its ledger: what happened there did not repeat\n" in said, said
    assert said.endswith("step 9 computed again: everything has the same bits\n"), said
    assert files == {path: path.read_bytes() for path in b.iterdir()}, "a replay changed the run"
    # Another seed is another run from the first parameter on.
    other = train(folder, "other", "--seed", 2)
    said = run(COMPARE_RUNS, "part", a, other, code=1)
    assert said.startswith("settings differ: seed 1 and 2\nstep 1: loss "), said
    assert re.search(r"^step 1: parameter 'embedding.weight' \[\d+, 24\], element \[0, 0\]: -?[\d.e-]+ against -?[\d.e-]+$", said, re.M), said
    # What differs after all ops, and other ops.
    said = run(COMPARE_RUNS, "part", a, train(folder, "faster", "--lr", 0.002), code=1)
    assert said.startswith("settings differ: lr 0.001 and 0.002\nstep 1: parameters "), said
    assert said.endswith("step 1: all ops have the same bits; the learning rate differs: 0.0002 against 0.0004\n"), said
    said = run(COMPARE_RUNS, "part", a, train(folder, "clipped", "--clip", 0.01), code=1)
    assert said.startswith("settings differ: clip 1.0 and 0.01\n"), said
    assert said.endswith("step 1: all ops have the same bits; clipping or the optimizer differs\n"), said
    # The steps of a run have the learning rates that they had before a --resume with other --steps.
    longer = train(folder, "longer", steps=8)
    train(folder, "longer", "--resume")
    assert re.match(rf"step 1/8 {longer} \| \d+", run(COMPARE_RUNS, "part", longer, longer, "--step", 8, progress=True)), "progress"
    for step in 8, 9, 20:
        assert run(COMPARE_RUNS, "part", longer, longer, "--step", step) == f"step {step}: everything has the same bits\n", step
    # Composed forms of hyper-connections are repeated as such.
    mhc = ["--connection", "mhc", "--phi-std", 0.5, "--alpha", 0.5, "--warmup", 0]
    fused, composed = train(folder, "fused", *mhc, steps=2), train(folder, "composed", *mhc, path="reference", steps=2)
    said = run(COMPARE_RUNS, "part", fused, composed, code=1)
    assert said.startswith("settings differ: BRAID_MHC_PATH fused and reference\n") and "did not repeat" not in said, said
    said = run(COMPARE_RUNS, "part", fused, composed, path="reference", code=2)
    assert said.endswith(f"{fused}: step 1 was computed without BRAID_MHC_PATH=reference: record it without it, too\n"), said
    said = run(TRAIN_LM, *TINY, "--channels", 24, "--text", text(folder), *mhc, "--steps", 3, "--resume", "--out", fused, path="reference", code=2)
    assert ", BRAID_MHC_PATH=reference, which rounds differently; --allow-other-processor " in said, said
    # Of trained connections alone, parameters have their own names.
    alone, other_alpha = (train(folder, f"alpha-{alpha}", *mhc, "--alpha", alpha, "--train", "connections", steps=2) for alpha in (0.5, 0.25))
    said = run(COMPARE_RUNS, "part", alone, other_alpha, code=1)
    assert re.search(r"^step 1: parameter 'blocks\.0\.attention\.connection\.alpha' ", said, re.M), said
    said = run(COMPARE_RUNS, "part", a, train(folder, "bf16", "--dtype", "bf16"), code=1)
    assert said.startswith("settings differ: dtype f32 and bf16\n"), said
    assert re.search(r"\nstep 1: other ops from here on: op '\w+' \(#\d+ of \d+.*\), .* against op '\w+' \(#", said), said
    # Texts that differ, and one that lacks a character of the model that it goes on from.
    words = text(folder).read_text()
    at = words.index("sum", 40)
    (folder / "later.txt").write_text(words[:at] + words[at:].replace("sum", "mus"))
    said = run(COMPARE_RUNS, "part", a, train(folder, "later", "--text", folder / "later.txt"), code=1)
    line = 1 + words.count("\n", 0, at)
    near = re.match(rf"settings differ: text_checksum \w+ and \w+\ntexts differ from line {line} on: '(.*)sum.*' and '(.*)mus.*'\n", said)
    assert near and near[1] == near[2] == words[max(at - 30, words.rfind("\n", 0, at) + 1):at], said
    assert re.search(r"\nstep \d+: op 'embedding' \(.*, element \[\d+, \d+, 0\]: \S+ against \S+; the windows of text differ there$", said), said
    (folder / "fewer.txt").write_text(words.replace("x", "s"))
    on = train(folder, "on", "--init", a, "--text", folder / "fewer.txt", "--warmup", 0, steps=3)
    assert run(COMPARE_RUNS, "part", on, on, "--step", 2) == "step 2: everything has the same bits\n", "--init"
    # What a run started from has gone on since.
    parent = train(folder, "parent", "--warmup", 0, steps=3)
    on, again = (train(folder, name, "--init", parent, "--warmup", 0, "--eval-every", 3, steps=3) for name in ("child", "again"))
    train(folder, "parent", "--warmup", 0, "--resume", steps=4)
    late = train(folder, "late", "--init", parent, "--warmup", 0, steps=3)
    assert run(COMPARE_RUNS, "same", on, again) == "steps 1 to 3 have the same bits\n", "--init"
    said = run(COMPARE_RUNS, "same", on, late, code=1)
    assert re.match(r"settings differ: init_checksum \w+ and \w+\n", said), said
    for checkpoint in on.glob("best*"):
        checkpoint.unlink()
    said = run(COMPARE_RUNS, "part", on, on, "--step", 1, code=2)
    assert said.endswith(f"compare_runs: {on}: step 1 cannot be repeated: --init: {parent} is not what the run started from\n"), said
    (text(folder)).write_text("another text " * 4000)
    said = run(COMPARE_RUNS, "part", a, other, "--step", 1, code=2)
    assert said.endswith(f"compare_runs: {a}: step 1 cannot be repeated: --text: {folder}/text.txt is not what the run was trained with\n"), said
    settings = json.loads((b / "config.json").read_text())
    (b / "config.json").write_text(json.dumps({key: value for key, value in settings.items() if key != "text_checksum"}))
    said = run(COMPARE_RUNS, "part", b, b, "--step", 20, code=2)  # by the checksum in the checkpoint that it starts from
    assert f"{b}: step 20 cannot be repeated: --resume: the run was started with another text: " in said, said
    text(folder)
    # A text whose path counts from the folder in which the run started.
    near = ["--channels", 24, "--text", "text.txt", "--warmup", 0, "--steps", 2, "--ledger", "--out", "near"]
    subprocess.run([os.path.abspath(TRAIN_LM), *map(str, [*TINY, *near])], cwd=folder, check=True, capture_output=True)
    assert run(COMPARE_RUNS, "part", folder / "near", folder / "near", "--step", 2) == "step 2: everything has the same bits\n"
    # A record of another machine.
    record = folder / "record"
    run(COMPARE_RUNS, "record", other, record, "--step", 1)
    said = run(COMPARE_RUNS, "part", a, record, code=1)
    assert said.startswith("settings differ: seed 1 and 2\nstep 1: parameter 'embedding.weight' [") and "record the other side with --keep 0\n" in said, said
    run(COMPARE_RUNS, "record", other, record, "--step", 1, "--keep", 0)
    assert "element [0, 0]: " in run(COMPARE_RUNS, "part", a, record, code=1)
    run(COMPARE_RUNS, "record", other, record, "--step", 1, "--keep", 1)
    said = run(COMPARE_RUNS, "part", a, record, code=1)
    assert said.endswith("]\nthe record has the elements of tensor 1; for the element, record the other side with --keep 0\n"), said
    said = run(COMPARE_RUNS, "part", a, folder / "text.txt", code=2)
    assert said.startswith(f"compare_runs: {folder}/text.txt: is no record of compare_runs: "), said
    said = run(COMPARE_RUNS, "part", record, a, code=2)
    assert said == f"compare_runs: part: {record} must be the folder of a run\n", said
    run(COMPARE_RUNS, "record", a, record, "--step", 3)
    said = run(COMPARE_RUNS, "part", a, record, "--step", 3, code=2)
    assert said == f"compare_runs: --step: {record} is the record of one step\n", said
    said = run(COMPARE_RUNS, "record", a, folder / "none", "--step", 3, "--isa", "avx1024", code=2)
    assert said == "compare_runs: --isa: this processor does not have avx1024\n", said
    assert run(COMPARE_RUNS, "part", a, record) == "step 3: everything has the same bits\n"
    data = record.read_bytes()
    size = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:size])
    events = json.loads(header["__metadata__"]["events"])
    header["__metadata__"]["events"] = json.dumps(events[:64])
    text_of_header = json.dumps(header).encode()
    (folder / "part").write_bytes(len(text_of_header).to_bytes(8, "little") + text_of_header + data[size:])
    assert run(COMPARE_RUNS, "part", a, folder / "part", code=1).endswith(" against none\n") and len(events) > 64, "fewer ops"
    gradients = json.loads((a / "ledger.jsonl").read_text().splitlines()[2])["gradients"].encode()
    record.write_bytes(record.read_bytes().replace(gradients, b"0" * len(gradients)))
    assert run(COMPARE_RUNS, "part", a, record, code=1) == "step 3: all ops have the same bits; the sum over blocks differs\n"
    said = run(COMPARE_RUNS, "record", other, record, "--step", 21, code=2)
    assert said == "compare_runs: --step: must be a step of the run, 1 to 20, but is 21\n", said
    (a / "config.json").write_text(re.sub(r'"isa": "\w+"', '"isa": "avx1024"', (a / "config.json").read_text()))
    said = run(COMPARE_RUNS, "record", a, record, "--step", 3, code=2)
    assert said == f"compare_runs: {a}: step 3 was computed with avx1024, which this processor lacks: record it on one that has it\n", said


def instruction_set(folder):
    """Two instruction sets part at a product, which the finder names."""
    sets = instruction_sets()
    if len(sets) < 3:
        sys.exit(77)
    wide = ["--channels", 256, "--context", 64, "--warmup", 0]
    a, b = train(folder, "a", *wide, isa=sets[1], steps=2), train(folder, "b", *wide, isa=sets[-1], steps=2)
    said = run(COMPARE_RUNS, "part", a, b, code=1)
    assert said.startswith(f"settings differ: instruction set {sets[1]} and {sets[-1]}\n"), said
    assert re.search(r"^step 1: op '\w+' \(#\d+ of \d+(, with [\w.]+)?\), (output|vjp, cotangent of input) \d \[[\d, ]+\], "
                     r"element \[[\d, ]+\]: \S+ against \S+$", said, re.M), said
    assert "did not repeat" not in said, said
    run(COMPARE_RUNS, "record", a, folder / "record", "--step", 1, isa=sets[-1])  # with the instruction set of the run
    assert run(COMPARE_RUNS, "part", a, folder / "record") == "step 1: everything has the same bits\n"
    run(COMPARE_RUNS, "record", a, folder / "record", "--step", 1, "--isa", sets[-1])  # with another one
    said = run(COMPARE_RUNS, "part", a, folder / "record", code=1)
    assert said.startswith(f"settings differ: instruction set {sets[1]} and {sets[-1]}\nstep 1: op '"), said
    assert run(COMPARE_RUNS, "part", b, folder / "record") == "step 1: everything has the same bits\n"
    # A run that goes on with another one: each step is repeated with its own.
    for steps, isa in (3, sets[1]), (5, sets[-1]), (6, sets[-1]):
        train(folder, "b", *wide, "--resume", "--allow-other-processor", isa=isa, steps=steps)
        assert run(COMPARE_RUNS, "part", b, b, "--step", steps) == f"step {steps}: everything has the same bits\n", steps
    starts = [(start["step"], start["isa"]) for start in json.loads((b / "config.json").read_text())["starts"]]
    assert starts == [(0, sets[-1]), (2, sets[1]), (3, sets[-1])], starts
    said = run(COMPARE_RUNS, "part", a, b, code=1)
    assert said.startswith(f"settings differ: instruction set {sets[1]} and {sets[-1]}, after step 2 {sets[1]}, after step 3 {sets[-1]}, "), said
    (b / "best.safetensors").unlink(missing_ok=True)
    assert run(COMPARE_RUNS, "part", b, b, "--step", 2) == "step 2: everything has the same bits\n"
    said = run(COMPARE_RUNS, "part", b, b, "--step", 3, code=2)
    assert ": step 3 cannot be repeated: step 1 was computed with another instruction set or BRAID_MHC_PATH than step 3, and no checkpoint " in said, said


with tempfile.TemporaryDirectory() as where:
    globals()[CASE.replace("-", "_")](pathlib.Path(where))
