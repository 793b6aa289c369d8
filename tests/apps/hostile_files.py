#!/usr/bin/python3 -B
"""Damages every file that a program reads, again and again: hostile_files.py BIN [--seconds N] [--seed S] [--out DIR]

Each answer must be a good end or exit code 2 and one line, with nothing written; time and memory beyond those of the
undamaged file must be in proportion to the file's size. Prints a line of counts per file; exits with 1 on failures, whose
files are kept in DIR.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from attack import Progress, program_copy
from generate_test import MODELS, with_tokenizer
from program import run, write_text
from stability_test import TINY as EXPERIMENT
from tiny_run import TINY

CASES = MODELS.parent / "cases"
TRAIN = ["train_lm", "--text", "text.txt", *TINY, "--warmup", 0, "--steps", 1, "--out", "new"]
RUN = ["train_lm", "--text", "text.txt", *TINY, "--steps", 10, "--checkpoint-every", 5, "--telemetry-every", 5, "--tensorboard", "--ledger",
       "--out", "run"]

# Beyond what the undamaged file took: the rule of core/files/budget.h, and the noise of a machine.
SECONDS, SECONDS_PER_BYTE, BYTES, BYTES_PER_BYTE, LEAST_SIZE = 2, 1e-4, 96 << 20, 4096, 1 << 16

NUMBERS = [b"-1", b"0", b"1e400", b"0.5", b"2147483648", b"9223372036854775807", b"18446744073709551616", b"16777216", b"true", b"null", b'""', b"[]",
           b"{}", b"nan"]


class Reader:
    """A program, its arguments, and the files that it reads in the current folder. One that `works` may do what a damaged
    file asks for until it is stopped."""

    def __init__(self, name, prepare, files, arguments, ends=(0, 2), works=False):
        self.name, self.prepare, self.files, self.arguments, self.ends = name, prepare, files, arguments, ends
        self.works, self.most_seconds = works, 3 if works else 60


def text(bin, folder):
    write_text(folder)


def tokens(bin, folder):
    (folder / "text.bin").write_bytes(struct.pack("<4000H", *random.Random(1).choices(range(8), k=4000)))


def tokenizer(bin, folder):
    text(bin, folder)
    shutil.copy(MODELS / "bpe/tokenizer.json", folder)


def model(family):
    return lambda bin, folder: with_tokenizer(family, folder)


def upcycled(bin, folder):
    tokens(bin, folder)
    shutil.copytree(MODELS / "gpt2", folder / "gpt2")


def half_a_run(bin, folder):
    text(bin, folder)
    result = run(bin / RUN[0], *RUN[1:], cwd=folder)
    if result.returncode != 0:
        sys.exit(f"hostile_files: the undamaged run failed: {result.stderr}")


def two_runs(bin, folder):
    half_a_run(bin, folder)
    shutil.copytree(folder / "run", folder / "other")


def case(name):
    def prepare(bin, folder):
        (folder / "cases").mkdir()
        shutil.copy(CASES / name, folder / "cases/case.safetensors")
    return prepare


def pretrained_case(bin, folder):
    shutil.copytree(MODELS / "llama", folder / "cases/llama")


def experiment(bin, folder):
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("seeds = [1, 2]", "seeds = [1]"))


def experiment_done(bin, folder):
    experiment(bin, folder)
    result = run(bin / "stability", "experiment.toml", "--out", "done", "--jobs", 1, cwd=folder)
    if result.returncode != 0:
        sys.exit(f"hostile_files: the undamaged experiment failed: {result.stderr}")


def readers():
    # Weights without a checksum may be read damaged, and give logits that are not finite: exit code 3.
    weights = (0, 2, 3)
    shards = ["config.json", "tokenizer.json", "model.safetensors.index.json", "model-00001-of-00004.safetensors"]
    yield Reader("a text", text, ["text.txt"], TRAIN)
    yield Reader("tokens", tokens, ["text.bin"], [*TRAIN, "--text", "text.bin"])
    yield Reader("a tokenizer", tokenizer, ["tokenizer.json"], [*TRAIN, "--tokenizer", "tokenizer.json"])
    yield Reader("GPT-2", model("gpt2"), [f"gpt2/{name}" for name in ("config.json", "tokenizer.json", "model.safetensors")],
                 ["generate", "--model", "gpt2", "--prompt", "hello", "--tokens", 2], weights)
    yield Reader("Llama in shards", model("llama"), [f"llama/{name}" for name in shards],
                 ["generate", "--model", "llama", "--prompt", "hello", "--tokens", 2], weights)
    yield Reader("--init", upcycled, ["gpt2/config.json", "gpt2/model.safetensors"],
                 ["train_lm", "--text", "text.bin", "--init", "gpt2", "--context", 8, "--batch", 2, "--steps", 0, "--sample", 0, "--out", "new"])
    yield Reader("--resume", half_a_run,
                 [f"run/{name}" for name in ("config.json", "checkpoint.safetensors", "metrics.jsonl", "telemetry.jsonl", "samples.jsonl",
                                             "ledger.jsonl", "events.out.tfevents.braid")], [*RUN, "--steps", 11, "--resume"])
    yield Reader("generate --run", half_a_run, ["run/config.json", "run/best.safetensors", "run/checkpoint.safetensors"],
                 ["generate", "--run", "run", "--tokens", 2])
    yield Reader("ledgers", two_runs, ["other/ledger.jsonl", "other/config.json"], ["compare_runs", "same", "run", "other"], (0, 1, 2))
    yield Reader("a golden case", case("mhc_layer_b1_n4_c8.safetensors"), ["cases/case.safetensors"], ["golden", "cases"], (0, 1, 2))
    yield Reader("a golden model", pretrained_case, ["cases/llama/config.json", "cases/llama/expected.safetensors"], ["golden", "cases"],
                 (0, 1, 2))
    yield Reader("an experiment", experiment, ["experiment.toml"], ["stability", "experiment.toml", "--out", "new", "--jobs", 1],
                 works=True)
    yield Reader("an experiment's results", experiment_done, ["done/config.toml", "done/runs"],
                 ["stability", "experiment.toml", "--out", "done", "--jobs", 1])


# Ways to damage: bytes and a source of chance give bytes.

def flip(data, chance):
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 8))):
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def cut(data, chance):
    return data[:chance.randrange(len(data))]


def piece(data, chance, longest=200):
    start = chance.randrange(len(data))
    return slice(start, start + chance.randrange(1, longest))


def drop(data, chance):
    what = piece(data, chance)
    return data[:what.start] + data[what.stop:]


def repeat(data, chance):
    what, times = piece(data, chance), chance.choice((1, 10, 1000, 10000))
    return data[:what.start] + data[what] * times + data[what.start:]


def nest(data, chance):
    at, (opening, closing) = chance.randrange(len(data)), chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"a.", b"")))
    depth = chance.choice((10, 100, 30000))
    return data[:at] + opening * depth + closing * depth + data[at:]


def number(data, chance):
    """Another number in place of one, or one for the length of a safetensors header, or what follows a colon."""
    places = [match.span() for match in re.finditer(rb"(?<![\w.])-?\d+(\.\d+)?(?![\w.])|(?<=[:=]) ?(\"[^\"]*\"|true|false|null)", data)]
    if not places or chance.random() < 0.05:
        return chance.choice((0, 1, 2**31, 2**62, 2**64 - 1, len(data))).to_bytes(8, "little") + data[8:]
    start, end = chance.choice(places)
    return data[:start] + chance.choice(NUMBERS) + data[end:]


def swap(data, chance):
    one, other = sorted((piece(data, chance), piece(data, chance)), key=lambda part: part.start)
    return data[:one.start] + data[other] + data[one.start:other.start] + data[one] + data[other.stop:]


WAYS = [flip, cut, drop, repeat, nest, number, number, swap]

# What stands where a file is expected.
INSTEAD = {
    "nothing": lambda path: None,
    "an empty file": lambda path: path.touch(),
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a hole of 64 MiB": lambda path: (path.touch(), os.truncate(path, 64 << 20)),
    "bytes that are no text": lambda path: path.write_bytes(bytes(range(256)) * 100),
}


def files_below(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


class Attempt:
    """A run of a reader's program in a folder: how it ended, and what it took."""

    def __init__(self, bin, reader, folder):
        with open(folder / "stderr.txt", "wb") as errors:
            process = subprocess.Popen([str(bin / reader.arguments[0]), *map(str, reader.arguments[1:])], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=errors, cwd=folder, env=os.environ | {"BRAID_NUM_THREADS": "1"})
        killer = threading.Timer(reader.most_seconds, process.kill)
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        killer.cancel()
        process.returncode = self.end = os.waitstatus_to_exitcode(status)
        self.seconds, self.bytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        self.said = (folder / "stderr.txt").read_bytes()
        (folder / "stderr.txt").unlink()


def wrong(reader, attempt, usual, size, wrote):
    """What is wrong with an attempt, or an empty string."""
    if attempt.end == -signal.SIGKILL:
        return "" if reader.works else f"still ran after {reader.most_seconds} s"
    if attempt.end not in reader.ends:
        return f"ended with {attempt.end}"
    starts = attempt.said.startswith(f"{reader.arguments[0]}: ".encode())
    if attempt.end in (2, 3) and not (starts and attempt.said.count(b"\n") == 1 and len(attempt.said) <= 2100):
        return "did not end in one line"
    if attempt.end == 2 and wrote:
        return f"refused but wrote {', '.join(sorted(wrote))}"
    if attempt.seconds > usual.seconds + SECONDS + SECONDS_PER_BYTE * size:
        return f"took {attempt.seconds:.1f} s instead of {usual.seconds:.1f}"
    if attempt.bytes > usual.bytes + BYTES + BYTES_PER_BYTE * size:
        return f"took {attempt.bytes >> 20} MiB instead of {usual.bytes >> 20}"
    return ""


class Attack:
    def __init__(self, bin, reader, folder, kept):
        self.bin, self.reader, self.kept = bin, reader, kept
        self.good = folder / "good"
        self.good.mkdir(parents=True)
        reader.prepare(bin, self.good)
        # A reader may name a folder, for all files below it.
        self.files = [path for name in reader.files for whole in [self.good / name]
                      for path in (sorted(p for p in whole.rglob("*") if p.is_file()) if whole.is_dir() else [whole])]
        shutil.copytree(self.good, folder / "usual")
        self.usual = Attempt(bin, reader, folder / "usual")
        if self.usual.end != 0:
            sys.exit(f"hostile_files: {reader.name}: the undamaged files gave {self.usual.end}: {self.usual.said.decode(errors='replace')}")
        self.folder, self.counts, self.failures = folder, collections.Counter(), []

    def attempt(self, index, seed):
        """The files in turn: first all that can stand where they are expected, then damage by chance."""
        file, round = self.files[index % len(self.files)], index // len(self.files)
        chance, folder = random.Random(f"{seed} {index}"), self.folder / str(index)
        shutil.copytree(self.good, folder)
        target = folder / file.relative_to(self.good)
        if round < len(INSTEAD):
            what = list(INSTEAD)[round]
            target.unlink()
            INSTEAD[what](target)
        else:
            way = chance.choice(WAYS)
            what = way.__name__
            target.write_bytes(way(file.read_bytes(), chance))
        size = max(LEAST_SIZE, target.lstat().st_size if target.is_file() and not target.is_symlink() else 0)
        before = files_below(folder)
        attempt = Attempt(self.bin, self.reader, folder)
        after = files_below(folder)
        wrote = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        failure = wrong(self.reader, attempt, self.usual, size, wrote)
        self.counts["failed" if failure else "refused" if attempt.end == 2 else "read"] += 1
        if failure:
            if round >= len(INSTEAD):
                self.kept.mkdir(parents=True, exist_ok=True)
                what += f" ({shutil.copy2(target, self.kept / f'{self.reader.name}-{index}-{file.name}')})"
            self.failures.append(f"{self.reader.name}, {what} for {file.relative_to(self.good)}: {failure}\n"
                                 f"    {' '.join(map(str, self.reader.arguments))}\n"
                                 f"    {attempt.said[:200].decode(errors='replace').strip()}")
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(prog="hostile_files", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="the folder of the programs")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="hostile-files", help="a folder for the files that showed a failure")
    asked = parser.parse_args()
    cores, attacks = os.cpu_count(), []
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(cores) as pool:
        bin = pathlib.Path(temporary)
        for program in sorted({reader.arguments[0] for reader in readers()} | {RUN[0]}):
            program_copy(f"{asked.bin}/{program}", bin)
        for number, reader in enumerate(readers()):
            attacks.append(Attack(bin, reader, bin / str(number), pathlib.Path(asked.out).resolve()))
        start, progress, done = time.monotonic(), Progress("seconds", round(asked.seconds)), 0
        for number, attack in enumerate(attacks):
            # Each has its share of what is left; all that can stand in place of a file comes first, whatever it takes.
            end = time.monotonic() + (start + asked.seconds - time.monotonic()) / (len(attacks) - number)
            first = len(INSTEAD) * len(attack.files)
            while attack.counts.total() < first or time.monotonic() < end:
                done = attack.counts.total()
                list(pool.map(lambda index: attack.attempt(index, asked.seed), range(done, done + 4 * cores)))
                progress.update(min(round(time.monotonic() - start), round(asked.seconds)))
            print(f"{attack.reader.name:<24}{attack.counts['read']:>6} read {attack.counts['refused']:>6} refused "
                  f"{attack.counts['failed']:>4} failed", flush=True)
    failures = [failure for attack in attacks for failure in attack.failures]
    print("\n".join(failures), file=sys.stderr, end="\n" if failures else "")
    print(f"{sum(attack.counts.total() for attack in attacks)} hostile files, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
