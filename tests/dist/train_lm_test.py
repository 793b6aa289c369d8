#!/usr/bin/python3 -B
"""train_lm over ranks as a user runs it: train_lm_test.py PROGRAM {bits|processors|starts|refused|failures}"""

import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from mpirun import children, run, start  # noqa: E402
from program import check, write_text  # noqa: E402
from tiny_run import losses, named_tensors, tensors  # noqa: E402

# Odd sizes; the learning rate is constant so that a run may be made longer.
SIZES = ["--layers", 2, "--channels", 21, "--heads", 3, "--context", 13, "--batch", 8, "--blocks", 8, "--warmup", 0, "--lr", 5e-3,
         "--min-lr", 5e-3, "--sample", 0, "--eval-every", 20]
CONNECTIONS = {"residual": [], "mhc": ["--streams", 3]}
STEPS = 50
MODELS = pathlib.Path(__file__).resolve().parents[1] / "golden/models"


def without_plots(program, folder):
    """A copy: pictures take longer than such runs, and the program finds the scripts that draw them next to itself."""
    script = folder / "plots" / "plot_loss.py"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return shutil.copy2(program, folder / "train_lm")


def train(program, ranks, folder, connection, out, *more):
    return run("-n", ranks, program, "--text", folder / "text.txt", *SIZES, "--connection", connection, *CONNECTIONS[connection],
               "--out", folder / out, *more)


def end_of(folder, out):
    lines = [json.loads(line) for line in (folder / out / "metrics.jsonl").read_text().splitlines()]
    return tensors(folder / out), [{k: v for k, v in line.items() if k != "tokens_per_s"} for line in lines]


def bits(program, folder):
    """Ranks times threads, alone, and stopped on some ranks and resumed on others: one result."""
    write_text(folder)
    for connection in CONNECTIONS:
        alone = subprocess.run([program, "--text", folder / "text.txt", *map(str, SIZES), "--connection", connection,
                                *map(str, CONNECTIONS[connection]), "--steps", str(STEPS), "--out", folder / f"{connection}-alone"],
                               capture_output=True, text=True)
        check(alone.returncode == 0, alone.stderr)
        expected = end_of(folder, f"{connection}-alone")
        for ranks, threads in itertools.product((1, 2, 3, 4, 5, 8), (1, 2, 3)):
            out = f"{connection}-{ranks}-{threads}"
            result = train(program, ranks, folder, connection, out, "--steps", STEPS, "--threads", threads)
            check(result.returncode == 0 and result.stderr == "", f"{out}: {result.stderr}")
            check(result.stdout.count("step 50/50") == 1, f"{out}: only rank 0 writes to stdout: {result.stdout}")
            check(end_of(folder, out) == expected, f"{out}: other bits than alone")
        out = f"{connection}-resumed"
        for ranks, more in ((4, ["--steps", 23]), (3, ["--steps", 37, "--resume"]), (1, ["--steps", STEPS, "--resume"])):
            result = train(program, ranks, folder, connection, out, *more, "--eval-every", 1000)
            check(result.returncode == 0, f"{out}: {result.stderr}")
        check(tensors(folder / out) == expected[0], f"{out}: other bits than alone")
        check(losses(folder / out) == [line["train_loss"] for line in expected[1]], f"{out}: other losses than alone")


def processors(program, folder):
    """Ranks with different instruction sets: refused, but for portable bits, which are those of one process with another."""
    write_text(folder)
    said = subprocess.run([program], env={**os.environ, "BRAID_ISA": "?"}, capture_output=True, text=True).stderr
    sets = said.partition("must be one of ")[2].partition(" on this")[0].split(", ")
    if "avx512" not in sets:
        sys.exit(77)
    flags = ["--text", folder / "text.txt", *SIZES, "--connection", "mhc", "--steps", 5]
    with_set = {name: ["env", f"BRAID_ISA={name}", program, *flags] for name in sets}
    mixed = ["-n", 1, *with_set["avx2"], "--out", folder / "ranks", ":", "-n", 1, *with_set["avx512"], "--out", folder / "ranks"]
    result = run(*mixed)
    check(result.returncode == 2 and "rank 1 has another instruction set than rank 0: avx512 (" in result.stderr, result.stderr)
    mixed = [part for argument in mixed for part in ((argument, "--bits", "portable") if argument == program else (argument,))]
    result = run(*mixed)
    check(result.returncode == 0, result.stderr)
    alone = subprocess.run([*map(str, with_set[sets[-1]]), "--bits", "portable", "--out", folder / "alone"], capture_output=True)
    check(alone.returncode == 0, alone.stderr)
    check(end_of(folder, "ranks") == end_of(folder, "alone"), "other bits on two instruction sets than on one")
    longer = [*with_set[sets[-1]], "--bits", "portable", "--steps", 7, "--resume", "--out"]
    for count, out in ((2, "ranks"), (1, "alone")):
        check(run("-n", count, *longer, folder / out).returncode == 0, f"{count} ranks do not go on")
    check(end_of(folder, "ranks") == end_of(folder, "alone"), "two ranks do not go on from the checkpoint as one does")


def files_of(out):
    """What a run wrote, but for its speed, the time, the machine and the order of tensors."""
    files = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix not in (".safetensors", ".png") and path.name != ".lock"}
    files |= {path.name: named_tensors(path)[0] for path in out.glob("*.safetensors")}
    files["metrics.jsonl"] = end_of(out.parent, out.name)[1]
    for name in ("config.json", "events.out.tfevents.braid"):
        files[name] = len(files.get(name, b"")) if "events" in name else name in files
    return files


def starts(program, folder):
    """From the model of a run or a pretrained one, on tokens, with connections alone: all files are those of one process."""
    text, ids = write_text(folder), folder / "ids.bin"
    ids.write_bytes(bytes(byte for i in range(4000) for byte in (i * i % 7, 0)))
    more = ["--steps", 20, "--eval-every", 10, "--checkpoint-every", 10]
    source = subprocess.run([program, "--text", text, *map(str, SIZES), "--steps", "10", "--out", folder / "source"], capture_output=True)
    check(source.returncode == 0, source.stderr)
    cases = {
        "run": ["--text", text, *SIZES, "--init", folder / "source", "--train", "connections", "--telemetry-every", 10,
                "--check-gradients", 10, "--tensorboard"],
        "pretrained": ["--text", ids, "--init", MODELS / "qwen3", "--context", 8, *SIZES[8:]],
        "experts": ["--text", text, *SIZES, "--experts", 3, "--optimizer", "muon"],
        "lora": ["--text", text, *SIZES, "--init", folder / "source", "--lora", 2, "--train", "connections", "--optimizer", "lion"],
        "tokens": ["--text", text, "--tokenizer", MODELS / "bpe/tokenizer.json", *SIZES],
    }
    for name, start in cases.items():
        flags = [*start, *more, "--connection", "mhc"]
        alone, three, resumed = folder / f"{name}-1", folder / f"{name}-3", folder / f"{name}-2-3"
        result = subprocess.run([program, *map(str, flags), "--out", alone], capture_output=True, text=True)
        check(result.returncode == 0, f"{name}: {result.stderr}")
        for ranks, out, extra in ((3, three, []), (2, resumed, ["--steps", 10]), (3, resumed, ["--resume"])):
            result = run("-n", ranks, program, *flags, "--out", out, *extra)
            check(result.returncode == 0 and result.stderr == "", f"{name} on {ranks} ranks: {result.stderr}")
        expected = files_of(alone)
        check("best.safetensors" in expected, f"{name}: {expected.keys()}")
        for out in (three, resumed):
            found = files_of(out)
            other = [file for file in expected | found if found.get(file) != expected.get(file)]
            check(other == [], f"{out.name}: other {other} than alone")


def lines_of(result):
    """What the program wrote to stderr."""
    return [line for line in result.stderr.splitlines() if line.startswith("train_lm: ")]


def refused(program, folder):
    """Ranks that would compute something else end before the first step, with one line; nothing is made."""
    text, other = write_text(folder), folder / "other.txt"
    other.write_text(text.read_text()[::-1])
    changed = shutil.copy2(program, folder / "changed")
    with open(changed, "ab") as binary:
        binary.write(b"\0")
    flags = [*SIZES, "--steps", STEPS, "--out", folder / "out"]
    here, good = ["-n", 2, program, "--text", text, *flags], ["--text", text, *flags]
    words, others = MODELS / "bpe/tokenizer.json", folder / "tokenizer.json"
    others.write_text(words.read_text() + " ")
    cases = [
        ("rank 2 has another tokenizer than rank 0: ",
         [*here, "--tokenizer", words, ":", "-n", 1, program, *good, "--tokenizer", others]),
        ("rank 2 has another text than rank 0: ", [*here, ":", "-n", 1, program, "--text", other, *flags]),
        ('rank 2 has another seed than rank 0: 7 instead of 1', [*here, ":", "-n", 1, program, *good, "--seed", 7]),
        ('rank 2 has another connection than rank 0: "mhc" instead of "residual"', [*here, ":", "-n", 1, program, *good, "--connection", "mhc"]),
        ('rank 2 has another on_nonfinite than rank 0: "skip" instead of "stop"', [*here, ":", "-n", 1, program, *good, "--on-nonfinite", "skip"]),
        ("rank 2 has another binary than rank 0: ", [*here, ":", "-n", 1, changed, *good]),
        ("rank 2 has another BRAID_MHC_PATH than rank 0: reference instead of fused",
         [*here, ":", "-n", 1, "env", "BRAID_MHC_PATH=reference", program, *good]),
        ("--blocks: 3 ranks need at least as many blocks but there are 2", ["-n", 3, program, *good, "--blocks", 2]),
        ("rank 2: --seed: ", [*here, ":", "-n", 1, program, *good, "--seed", "many"]),
        ("--seed: ", ["-n", 3, program, *good, "--seed", "many"]),
        ("--resume: ", ["-n", 3, program, *good, "--resume"]),
    ]
    for expected, arguments in cases:
        result = run(*arguments, timeout=60)
        check(result.returncode == 2, f"{expected}: exit code {result.returncode}")
        check(len(lines_of(result)) == 1 and result.stderr.count("\n") == 1, f"{expected}: {result.stderr}")
        check(expected in result.stderr, f"expected '{expected}', got {result.stderr}")
        check(not (folder / "out").exists(), f"{expected}: a folder was made")
    result = run("-n", 3, program, "--help")
    check(result.returncode == 0 and result.stdout.count("--connection ") == 1 and result.stderr == "", f"{result}")
    launchers = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"]
    told_by_none = ["env", *(part for name in launchers for part in ("-u", name))]
    # Alone, each process writes. SLURM_NTASKS is of a job, in which srun need not have started the program.
    for variable, writers in [*((f"{name}=2", 1) for name in launchers), ("PMI_SIZE=1", 2), ("SLURM_NTASKS=2", 2)]:
        result = run("-n", 2, *told_by_none, variable, program, "--version")
        check(result.returncode == 0 and result.stdout.count("\ncompiler: ") == writers, f"{variable}: {result}")


def wait_for_lines(path, count):
    end = time.monotonic() + 60
    while not path.exists() or path.read_text().count("\n") < count:
        check(time.monotonic() < end, f"{path} has no {count} lines")
        time.sleep(0.01)


def failures(program, folder):
    """A rank that is killed, out of memory or not finite ends all, and the last checkpoint is whole; SIGTERM saves."""
    write_text(folder)
    check(train(program, 1, folder, "mhc", "whole", "--steps", 600).returncode == 0, "the unbroken run failed")
    more = ["--steps", 600, "--checkpoint-every", 5, "--eval-every", 20]
    flags = ["--text", folder / "text.txt", *SIZES, "--connection", "mhc", *CONNECTIONS["mhc"], *more, "--out", folder / "broken"]
    for count, (which, how) in enumerate([(2, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGTERM)]):
        process = start("-n", 3, program, *flags, *(["--resume"] if count else []))
        wait_for_lines(folder / "broken" / "metrics.jsonl", 30 + 40 * count)
        os.kill(children(process)[which], how)
        killed = time.monotonic()
        output, errors = process.communicate(timeout=60)
        check(time.monotonic() - killed < 10, f"{how}: after {time.monotonic() - killed:.1f} s")
        if how == signal.SIGKILL:
            check(errors.count("\n") == 1 and errors.startswith(f"train_lm: rank {which}") and "is gone" in errors, f"{errors}")
        else:
            check(errors == "" and "interrupted at step " in output and process.returncode == 130, f"{output} {errors}")
            check("; continue with: mpirun -n 3 " in output and output.count(" --resume") == 1, output)
            check("picture: " not in output, "a picture takes time that mpirun does not give")
    check(train(program, 2, folder, "mhc", "broken", *more, "--resume").returncode == 0, "not resumed")
    check(end_of(folder, "broken") == end_of(folder, "whole"), "other bits than the unbroken run")
    script = program.parent / "plots" / "report.py"  # kills rank 0 after the state is saved, as mpirun may
    script.write_text('#!/bin/sh\n[ "$4" = --live ] || kill -KILL $PPID\n')
    script.chmod(0o755)
    process = start("-n", 3, program, *flags[:-1], folder / "saved", "--report")
    wait_for_lines(folder / "saved" / "metrics.jsonl", 30)
    os.kill(children(process)[2], signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    check(errors == "" and "interrupted at step " in output and process.returncode in (2, 137), f"{output} {errors}")
    process = start("-n", 1, program, *flags, "--resume", "--steps", 100000, "--patience", 2, ":",
                    "-n", 2, program, *flags, "--resume", "--steps", 100000, "--patience", 16777216)  # that of rank 0 counts
    wait_for_lines(folder / "broken" / "metrics.jsonl", 610)
    time.sleep(3)
    check(process.poll() is None, "ended without reason")
    os.kill(children(process)[1], signal.SIGSTOP)
    errors = process.communicate(timeout=60)[1]
    check(process.returncode == 2 and errors.startswith("train_lm: rank 1 (process ") and errors.count("\n") == 1, errors)
    check("has not answered for 2 s" in errors, errors)
    result = train(program, 3, folder, "residual", "nonfinite", "--steps", 40, "--lr", "1e30", "--checkpoint-every", 1)
    check(result.returncode == 3 and len(lines_of(result)) == 1 and result.stderr.count("\n") == 1, f"{result.stderr}")
    check("the loss of block " in result.stderr and " on rank " in result.stderr, result.stderr)
    check((folder / "nonfinite" / "checkpoint.safetensors").exists(), "no checkpoint is left")
    limited = ["sh", "-c", 'ulimit -v 720000; exec "$0" "$@"', program]
    if subprocess.run([*limited, "--help"], capture_output=True).returncode == 0:  # not under AddressSanitizer
        large = ["--text", folder / "text.txt", "--layers", 4, "--channels", 512, "--heads", 2, "--context", 64, "--batch", 64,
                 "--blocks", 8, "--steps", 2, "--threads", 1, "--out", folder / "large"]
        result = run("-n", 2, program, *large, ":", "-n", 1, *limited, *large)
        check(result.returncode == 2 and result.stderr == "train_lm: rank 2: not enough memory\n", f"{result}")


if __name__ == "__main__":
    program, case = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        {"bits": bits, "processors": processors, "starts": starts, "refused": refused, "failures": failures}[case](without_plots(program, pathlib.Path(name)), pathlib.Path(name))
