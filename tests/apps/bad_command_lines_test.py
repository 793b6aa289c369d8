#!/usr/bin/python3 -B
"""Wrong command lines of every program and of ./dev give exit code 2 and one line on stderr, and write nothing. A full
stdout gives the same. --help tells ranges and defaults.

usage: bad_command_lines_test.py BIN DEV
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from program import check, write_text

NOT_WHOLE = ["5x", "3.7", "1e5", "0x10", "", "nan", "99999999999999999999", "5\n", "--"]
NOT_FINITE = ["nan", "inf", "-inf", "1e400", "0.1x", "", "1,5"]
BAD_COUNT = [*NOT_WHOLE, "0", "-1"]
SIZES = ["--layers", "--channels", "--heads", "--context", "--batch"]
OUTSIDE = {"NOT_UTF8": os.fsdecode(b"\xff\xfe"), "LONG": "x" * 300}

TRAIN = {flag: BAD_COUNT for flag in [*SIZES, "--steps", "--eval-every", "--checkpoint-every", "--blocks"]}
TRAIN |= {"--patience": [*BAD_COUNT, "16777217"]}
TRAIN |= {flag: [*NOT_FINITE, "-1", "1e308"] for flag in ["--lr", "--weight-decay"]}
TRAIN |= {"--clip": ["0", *NOT_FINITE], "--seed": [*NOT_WHOLE, "-1"], "--threads": ["-1", "1025"], "--warmup": ["-1", "2001"],
          "--sample": ["-1", "x"], "--min-lr": ["1", "nan"], "--on-nonfinite": ["", "go"], "--connection": ["", "mch", "a\nb"],
          "--init": ["none", "loop", "NOT_UTF8"], "--train": ["", "none", "connections"], "--alpha": ["-1", "nan"],
          "--streams": ["0", "65"], "--skip-epsilon": ["nan", "1x"], "--skip-temperature": ["nan", "0"]}
FLAGS = {
    "train_lm": TRAIN,
    "compare_connections": {flag: BAD_COUNT for flag in [*SIZES, "--steps", "--evaluations"]} |
                           {"--seed": ["-1", "1e3"], "--threads": ["x"],
                            "--connections": ["all,mhc", "x\ny"], "--mixings": ["none"], "--text": ["none.txt"]},
    "check_gradients": {flag: ["0", "1e5", "-3"] for flag in [*SIZES, "--vocab", "--directions"]} |
                       {"--tolerance": ["nan", "0", "x"], "--seed": ["-1"], "--threads": ["-1"]},
    "train_step": {flag: ["0", "1e5", "-3"] for flag in [*SIZES, "--vocab", "--steps", "--streams", "--threads"]} |
                  {"--path": ["foo"], "--connection": ["foo"], "--keep-every": ["-1"]},
    "gradcheck_table": {"--tolerance": ["nan", "-1"], "--points": ["-1", "1e3"], "--seed": ["-1", "1.5"]},
    "port_a_module": {"--break": ["x"]},
    "stability": {"--jobs": BAD_COUNT},
    "gradient_penalty": {"--steps": BAD_COUNT},
    "physics_informed": {"--steps": [*BAD_COUNT, "49"]},
    "generate": {"--tokens": BAD_COUNT, "--temperature": ["0", "-1", *NOT_FINITE], "--top-k": [*NOT_WHOLE, "-1"], "--seed": [*NOT_WHOLE, "-1"],
                 "--top-p": ["0", "1.1", *NOT_FINITE], "--overlap": ["-0.1", "1.1", *NOT_FINITE], "--threads": ["-1", "1025"], "--stop": [""]},
    "look": {"--tokens": BAD_COUNT, "--threads": ["-1", "1025"], "--ablate": ["", "stream", "write:1:2", "LONG"], "--scale": ["write:1", "write:1:nan"],
             "--swap": ["stream:1", "write:1:2"], "--rescue": ["path:1", "write:1"]},
}
LINES = {
    "train_lm": [["--steps"], ["--ledger", "--ledger"], ["--report=5"], ["extra"], ["--color", "red"], ["--resume"], ["--resume", "--out", "none"],
                 ["--text", "none.txt", "--out", "new"], ["--text", ".", "--out", "new"], ["--out", "LONG"],
                 ["--out", "new/LONG"], ["--out", "NOT_UTF8"], ["--text", "NOT_UTF8", "--out", "new"], ["--out", "loop/new"],
                 ["--text", "sparse.txt", "--out", "new"],
                 ["--out", "text.txt"], ["--out", "text.txt/new"], ["--out", "/proc/new"], ["--out", "/dev/null"],
                 ["--text", "loop", "--out", "new"], ["--text", "bytes.dat", "--out", "new"], ["--text", "odd.bin", "--out", "new"],
                 ["--text", "none.bin", "--out", "new"], ["--text", "loop.bin", "--out", "new"], ["--tokenizer", "none.json", "--out", "new"],
                 ["--tokenizer", "text.txt", "--out", "new"], ["--tokenizer", "NOT_UTF8", "--out", "new"],
                 ["--text", "surrogate.txt", "--out", "new"], ["--text", "beyond.txt", "--out", "new"],
                 ["--text", "overlong.txt", "--out", "new"], ["--heads", "3", "--channels", "16", "--out", "new"],
                 ["--channels", "1048576", "--heads", "1", "--out", "new"], ["--batch", "16777216", "--out", "new"],
                 ["--layers", "16777216", "--out", "new"], ["--experts", "16777216", "--out", "new"], ["--lora", "16777216", "--out", "new"],
                 ["--experts", "1", "--out", "new"], ["--optimizer", "adam", "--out", "new"],
                 ["--connection", "mhc", "--mixing", "nan", "--out", "new"], ["--channels", "16777216", "--layers", "16777216", "--out", "new"]],
    "compare_connections": [["extra"], ["--out", "LONG"], ["--out", "loop/x"], ["--text", "bytes.dat", "--out", "new"],
                            ["--heads", "5", "--out", "new"], ["--layers", "16777216", "--out", "new"]],
    "check_gradients": [["extra"], ["--connection", "rezero", "--streams", "2"], ["--channels", "16777216"], ["--channels", "5", "--heads", "2"]],
    "train_step": [["--connection", "residual", "--streams", "8"], ["--connection", "residual", "--mixing", "rows"], ["--connection", "hc", "--mixing", "rows"],
                   ["--connection", "frac", "--keep-every", "2"], ["--compare", "--depth-block", "2"], ["--compare", "--plan"], ["--profile", "--plan"],
                   ["--profile", "--trace", "none/x"], ["--profile", "--trace", "."], ["--profile", "--trace", "loop/x"], ["extra"], ["--channels", "16777216"], ["--batch", "16777216", "--context", "16777216"]],
    "wrong_gradient": [["--draw", "none/x"], ["--draw", "."], ["--draw", "loop/x"], ["--draw"]],
    "gradcheck_table": [["extra"], ["--points"]],
    "port_a_module": [["none.safetensors"], ["text.txt"], ["loop"], ["a", "b"], ["new\nline"]],
    "stability": [[], ["none.toml"], ["text.txt"], ["loop"], ["bytes.dat"], ["new\nline", "--out", "new"]],
    "generate": [[], ["extra"], ["--model", "none"], ["--model", "."], ["--model", "text.txt"], ["--model", "loop"], ["--run", "none"], ["--run", "."],
                 ["--run", "text.txt"], ["--run", "loop"], ["--model", ".", "--run", "."], ["--model", "new\nline"], ["--run", "NOT_UTF8"],
                 ["--run", ".", "--prompt", "NOT_UTF8"], ["--run", ".", "--stop", "NOT_UTF8"]],
    "look": [[], ["extra"], ["--run", "none"], ["--run", "none", "--text", "text.txt"], ["--model", "none", "--text", "text.txt"],
             ["--run", ".", "--model", ".", "--text", "text.txt"], ["--run", "loop", "--text", "text.txt"], ["--run", "NOT_UTF8", "--text", "text.txt"],
             ["--run", ".", "--text", "NOT_UTF8"], ["--run", ".", "--text", "text.txt", "--out", "page"], ["--run", "new\nline", "--text", "text.txt"]],
    **{example: [["extra"], ["--out", "LONG"], ["--out", "loop/x"], ["--out", "text.txt/new"], ["--out"]]
       for example in ("gradient_penalty", "physics_informed", "pictures", "two_spirals")},
    "golden": [[], ["none"], ["text.txt"], ["."], [".", "--only"], ["loop"], ["new\nline"], [".", "extra"]],
    "mixing_facts": [["extra"], ["--x"]],
    "dev": [["nothing"], ["new\nline"], ["test", "--preset"], ["test", "--preset", "x"], ["test", "("], ["test", "a", "b"],
            ["test", "--x"], ["test", ""], ["bench", "--x"], ["bench", "("], ["bench", "a", "b"], ["golden"], ["golden", "none"],
            ["golden", "a", "b"], ["stability", "huge"], ["report"], ["look"], ["look", "--text"], ["sanitize", "x"], ["sanitize", "fast", "x"], ["sanitize", ""],
            ["format", "x"], ["format", "--x"], ["docs", "x"], ["docs", "--x"],
            ["docs", "--check", "x"], ["docs", "--verify", "x"], ["docs", "--update", "--verify"], ["install"], ["install", "a", "b"], ["install", "--x"], ["package", "x"],
            ["package", "--x"], ["--x"]],
}
EXAMPLES = ["ablation", "basic_usage", "custom_op", "derivatives", "dropout", "gradients", "history_skip", "own_optimizer", "profile", "regression", "tensors", "three_lines", "transformer_block", "where_runs_part", "wrong_gradient"]
BENCHMARKS = [f"bench_{name}" for name in ("gemm", "mhc", "mixings", "ops", "sinkhorn", "streams")]
ENVIRONMENTS = [{"BRAID_NUM_THREADS": value} for value in ("0", "-1", "abc", "200000", "2x", "")] + \
               [{"BRAID_MHC_PATH": "foo"}] + [{"BRAID_ISA": value} for value in ("", "AVX2", "sse4")]

COUNT, OR_NONE, THREADS = "INT in [1 - 16777216]", "INT in [0 - 16777216]", {"INT in [0 - 1024]": "threads=0", "UINT": "seed=1"}
CONNECTION = {"INT in [1 - 64]": "streams fractions=4 proposals=1", "INT in [1 - 1000]": "sinkhorn-iterations=20",
              "INT in [1 - 4096]": "laurel-rank=4", "INT in [1 - 1024]": "max-history=4 depth-block=1 keep-every=1",
              "NONNEGATIVE": "phi-std=0.02 alpha=0.01", "FLOAT": "skip-epsilon=0.1 skip-temperature=1 scale-init=0.1",
              "TEXT": "mixing=sinkhorn head=own skip-mode=mhc skip-constraint=simplex skip-init=identity skip-projection=forward"}
# What --help tells of options: {program: {range or type: flags, with their defaults}}.
TOLD = {
    "train_lm": {
        **CONNECTION, **THREADS, OR_NONE: "experts=0 lora=0 steps=2000 warmup telemetry-every=0 check-gradients=0 sample=400",
        COUNT: "layers=4 channels=128 heads=4 experts-per-token=2 context=64 batch=12 blocks=1 patience=60 eval-every=250 "
               "checkpoint-every=250",
        "FLOAT in [0 - 1e+30]": "lr=0.001 min-lr=0.0001 weight-decay=0.1", "FLOAT in [1e-30 - 1e+30]": "clip=1"},
    "compare_connections": {**CONNECTION, **THREADS, COUNT: "layers=4 channels=48 heads=4 context=32 batch=8",
                            "INT in [1 - 1000000]": "steps=400 evaluations=8"},
    "check_gradients": {**CONNECTION, **THREADS, "TEXT": "connection=mhc", "POSITIVE": "tolerance=1e-06",
                        COUNT: "layers=6 channels=384 heads=6 context=16 batch=2 vocab=65 directions=2"},
    "generate": {**THREADS, COUNT: "tokens=200", OR_NONE: "top-k=0", "FLOAT in [1e-06 - 1e+06]": "temperature=1",
                 "FLOAT in [1e-09 - 1]": "top-p=1", "FLOAT in [0 - 1]": "overlap"},
    "look": {COUNT: "tokens", "INT in [0 - 1024]": "threads=0"}, "stability": {"INT in [1 - 1024]": "jobs"},
}


def not_told(program, help):
    for limits, flags in TOLD[program].items():
        for flag, _, default in (flag.partition("=") for flag in flags.split()):
            shown = rf"(=| \[){re.escape(default)}(\]| |$)" if default else ""
            if not re.search(rf"^ *--{flag} .*{re.escape(limits)}{shown}", help, re.MULTILINE):
                yield f"{program} --help does not tell {limits} and '{default}' of --{flag}"


def command_lines():
    """(program, arguments, environment) of everything above."""
    for program, flags in FLAGS.items():
        writes = program in ("train_lm", "compare_connections", "stability")
        start = ["good.toml"] if program == "stability" else []
        yield from ((program, [*start, *(["--out", "new"] if writes and flag != "--out" else []), f"{flag}={value}"], {})
                    for flag, values in flags.items() for value in values)
    for program, lines in LINES.items():
        yield from ((program, line, {}) for line in lines)
    for program in [*EXAMPLES, *BENCHMARKS]:
        yield from ((program, line, {}) for line in (["extra"], ["--x"], ["new\nline"]))
    yield from ((program, ["--out", "new"], env) for program in ("train_lm", "compare_connections") for env in ENVIRONMENTS)
    yield from ((program, [], env) for program in [*EXAMPLES, "golden", "gradcheck_table", "stability"] for env in ENVIRONMENTS)


def prepare(folder):
    write_text(folder)
    (folder / "loop").symlink_to("loop")
    (folder / "sparse.txt").touch()
    os.truncate(folder / "sparse.txt", 1 << 42)
    (folder / "bytes.dat").write_bytes(bytes(range(256)) * 20)
    (folder / "odd.bin").write_bytes(bytes(range(255)))
    (folder / "loop.bin").symlink_to("loop.bin")
    for name, encoded in {"surrogate": b"\xed\xa0\x80", "beyond": b"\xf4\x90\x80\x80", "overlong": b"\xc0\xaf"}.items():
        (folder / f"{name}.txt").write_bytes(b"good text " * 500 + encoded + b" good text" * 500)
    (folder / "good.toml").write_text((pathlib.Path(__file__).parents[2] / "apps/stability/smoke.toml").read_text())


def main(bin, dev):
    count, wrong = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)
        before = sorted(folder.rglob("*"))
        for program, arguments, environment in command_lines():
            path = dev if program == "dev" else f"{bin}/{program}"
            if not os.path.exists(path):  # of a part that was not built
                continue
            arguments = [a.replace("NOT_UTF8", OUTSIDE["NOT_UTF8"]).replace("LONG", OUTSIDE["LONG"]) for a in arguments]
            count += 1
            try:
                result = subprocess.run([path, *arguments], capture_output=True, cwd=folder, env=os.environ | environment, timeout=30)
            except subprocess.TimeoutExpired:
                wrong.append(f"{program} {arguments} {environment}: runs")
                break
            one_line = result.stderr.count(b"\n") == 1 and result.stderr.startswith(f"{program}: ".encode())
            if result.returncode != 2 or not one_line or len(result.stderr) > 2100 or result.stdout.count(b"\n") > 1:
                wrong.append(f"{program} {arguments} {environment}: {result.returncode} {result.stderr[:300]!r} {result.stdout[:80]!r}")
            if sorted(folder.rglob("*")) != before:
                wrong.append(f"{program} {arguments} {environment}: wrote files")
                break
        for program in TOLD:
            if os.path.exists(f"{bin}/{program}"):
                help = subprocess.run([f"{bin}/{program}", "--help"], capture_output=True, text=True, timeout=30)
                wrong += not_told(program, help.stdout)
        for program in [*FLAGS, *EXAMPLES, "golden", "mixing_facts"]:
            if os.path.exists(f"{bin}/{program}"):
                with open("/dev/full", "w") as full:
                    result = subprocess.run([f"{bin}/{program}", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
                if (result.returncode, result.stderr) != (2, f"{program}: stdout: could not be written to its end\n"):
                    wrong.append(f"{program} --help >/dev/full: {result.returncode} {result.stderr!r}")
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess.run([f"{bin}/train_lm", "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=30)
        os.close(writer)
        if (result.returncode, result.stderr) != (0, ""):  # it goes on when its reader is gone
            wrong.append(f"train_lm --help into a closed pipe: {result.returncode} {result.stderr!r}")
    check(not wrong, "\n".join(wrong))
    check(count >= 250, f"only {count} command lines")
    print(f"{count} command lines refused")


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
