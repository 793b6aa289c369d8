#!/usr/bin/python3 -B
"""Plants slips in the library and the programs and says which of them no test notices; see ./dev mutate --help.

All mutants of a run are in one build, each behind a switch (mutants.py, workshop.py). The tests run once and record which mutants
they pass; then each mutant is switched on for the tests that pass it, the quickest and nearest first, until one fails (suite.py).
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import difflib
import fcntl
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
import time

import mutants
import suite
import workshop
from workshop import CORES, HERE, ROOT, WORK, folder

OUTCOMES = ["noticed", "survives", "not reached", "equivalent"]
MISSED = OUTCOMES[1:3]
HAS_AMX = "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
LIBRARY = ["core", "autograd", "nn", "mhc", "dist"]


def fail(message):
    print(f"dev: mutate: {message}", file=sys.stderr)
    sys.exit(2)


def runs_here(path):
    """Whether it is a C++ source that this build compiles and that this processor can run."""
    return path.endswith((".h", ".cpp")) and "/without/" not in path and (HAS_AMX or "amx" not in path)


def sources(paths):
    """The C++ sources in files and folders, as paths from the root."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [path for path in listed.split("\0") if runs_here(path)]
    if not found:
        fail(f"no C++ sources in {' '.join(paths)}")
    return found


def changed_lines(reference):
    """{path: lines that differ from the reference} of the library and the programs."""
    command = ["git", "diff", "--unified=0", "--no-color", reference, "--", *LIBRARY, "apps"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"--change: git knows no '{reference}'")
    lines, path = collections.defaultdict(set), None
    for line in done.stdout.splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            lines[path].update(range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1)))
    return {path: numbers for path, numbers in lines.items() if runs_here(path) and numbers}


def find(path):
    """The mutants of a file and the number of its declarations left out; kept for the next run."""
    key = hashlib.sha256((ROOT / path).read_bytes() + (HERE / "mutants.py").read_bytes()).hexdigest()
    kept = WORK / "found" / f"{path.replace('/', '+')}-{key[:16]}.json"
    if not kept.is_file():
        finder = mutants.Finder(ROOT, path, workshop.parse_flags())
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps([[dataclasses.astuple(mutant) for mutant in sorted(finder.mutants)], finder.constant]))
    found, constant = json.loads(kept.read_text())
    return [mutants.Mutant(*fields) for fields in found], constant


def line_of(mutant):
    source = (ROOT / mutant.path).read_bytes()
    return source.count(b"\n", 0, mutant.begin) + 1


def original(mutant):
    return (ROOT / mutant.path).read_bytes()[mutant.begin : mutant.end].decode()


def identity(mutant):
    """What stays when other lines of the file change."""
    line = (ROOT / mutant.path).read_text().splitlines()[line_of(mutant) - 1].strip()
    return [mutant.path, line, original(mutant), mutant.text]


def evenly(found, count, seed):
    """Of each folder as many of its mutants, chosen at random, as of every other, or all."""
    groups = collections.defaultdict(list)
    for mutant in found:
        groups[folder(mutant.path)].append(mutant)
    chosen, left = [], count
    for index, name in enumerate(sorted(groups, key=lambda name: len(groups[name]))):
        share = min(len(groups[name]), left // (len(groups) - index))
        chosen += random.Random(f"{seed} {name}").sample(groups[name], share)
        left -= share
    return random.Random(seed).sample(chosen, len(chosen))  # in an order that tells of all folders early


def equivalents():
    """{(path, line, text): reason} of the mutants that no user can see."""
    found = {}
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if match := re.fullmatch(r"(\S+): `(.*?)` -> `(.*?)`: (.+)", line):
            found[match[1], match[2], match[3]] = match[4]
    return found


def show(result):
    path, line, old, new = result["identity"]
    print(f"{path}:{result['line']}: {result['kind']}, {result['outcome']}")
    print("".join(f"  {mark[0]} {mark[2:]}\n" for mark in difflib.ndiff([old], [new]) if mark[0] in "+-"), end="")
    if result["tests"]:
        others = " .." if len(result["tests"]) > 6 else ""
        print(f"    {len(result['tests'])} tests ran over it: {', '.join(result['tests'][:6])}{others}")


def table(results):
    print(f"{'folder':<12}{'mutants':>9}" + "".join(f"{outcome:>13}" for outcome in OUTCOMES) + "   score")
    folders = sorted({folder(result["identity"][0]) for result in results})
    for name in [*folders, ""]:
        mine = collections.Counter(result["outcome"] for result in results if name in ("", folder(result["identity"][0])))
        judged = mine["noticed"] + mine["survives"] + mine["not reached"]
        score = f"{mine['noticed'] / judged:8.1%}" if judged else ""
        print(f"{name or 'all':<12}{sum(mine.values()):>9}" + "".join(f"{mine[outcome]:>13}" for outcome in OUTCOMES) + score)


def arguments():
    parser = argparse.ArgumentParser(add_help=False)
    parser.error = lambda message: fail(f"{message} (see ./dev mutate --help)")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--change", nargs="?", const="main")
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--patience", type=float, default=60.0)
    options = parser.parse_args()
    if options.paths and options.change:
        fail("--change takes no paths")
    if options.count is not None and options.count < 1:
        fail(f"--count must be at least 1 but is {options.count}")
    if options.survivors and options.resume:
        fail("--resume goes on with a run, --survivors tries those of a whole one: one of them")
    if (options.survivors or options.resume) and not (WORK / "results.jsonl").is_file():
        fail("there is no earlier run")
    return options


def last_results():
    return [json.loads(line) for line in (WORK / "results.jsonl").read_text().splitlines()]


def sample(options):
    lines = changed_lines(options.change) if options.change else {}
    if options.change and not lines:
        fail(f"no line of the library and the programs differs from {options.change}")
    paths = sorted(lines) if options.change else sources(options.paths or LIBRARY)
    with concurrent.futures.ProcessPoolExecutor(CORES) as pool:
        found = list(pool.map(find, paths, chunksize=8))
    everything = [mutant for some, _ in found for mutant in some if not options.change or line_of(mutant) in lines[mutant.path]]
    print(f"{len(everything)} mutants in {len(paths)} files; {sum(constant for _, constant in found)} declarations are left out, "
          "which the compiler evaluates", flush=True)
    if options.survivors:
        missed = [result["identity"] for result in last_results() if result["outcome"] in MISSED]
        return [mutant for mutant in everything if identity(mutant) in missed]
    return evenly(everything, options.count or (200 if options.change else 2000), options.seed)


def result_of(mutant, outcome, tests):
    return {"identity": identity(mutant), "line": line_of(mutant), "kind": mutant.kind, "outcome": outcome, "tests": tests}


def keep(results):
    (WORK / "results.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))


def judge(numbered, tests, patience, results, at_once=CORES):
    """Puts the results of the mutants into {number: result}; prints how far it is, and keeps what an interrupted run knows."""
    start, known, judged = time.monotonic(), equivalents(), 0

    def one(number, mutant):
        path, line, _, text = identity(mutant)
        outcome = ("equivalent", []) if (path, line, text) in known else suite.hunt(number, mutant, tests, patience)
        return number, result_of(mutant, *outcome)

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, *pair) for pair in numbered]):
            number, result = done.result()
            if result["outcome"] != "not reached" or number not in results:
                earlier = results[number]["tests"] if number in results and result["outcome"] == "survives" else []
                results[number] = result | {"tests": earlier + result["tests"]}
            judged += 1
            if judged % 20 == 0:
                missed = sum(result["outcome"] in MISSED for result in results.values())
                left = (time.monotonic() - start) / judged * (len(numbered) - judged) / 60
                print(f"  {judged} of {len(numbered)}, {missed} not noticed, {left:.0f} minutes left", flush=True)
                keep(results.values())


def hunt_all(numbered, count, options, results):
    """First by the test programs and golden cases; then by the programs' own tests what is left.

    A change, and mutants of programs alone, are tried by the test programs of their folders.
    """
    folders = {folder(mutant.path) for _, mutant in numbered}
    if not options.change and folders & set(LIBRARY):
        folders = set()
    print("running the tests of the library once", flush=True)

    def of_library(name, in_program):
        return in_program or folder(name) == "golden"

    tests = suite.record(count, lambda name, *how: of_library(name, *how) and (not folders or folder(name) in folders))
    judge(numbered, tests, options.patience, results)
    left = [pair for pair in numbered if results[pair[0]]["outcome"] in MISSED]
    if left and not (options.change and folders <= set(LIBRARY)):
        print(f"running the tests of programs once, for {len(left)} that are not noticed", flush=True)
        tests = suite.record(count, lambda name, *how: not of_library(name, *how))
        judge(left, tests, 3 * options.patience, results, at_once=2 * CORES)  # they take longer, and much of it they wait


def main():
    options = arguments()
    WORK.mkdir(exist_ok=True)
    turn = open(WORK / "turn", "w")
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fail(f"another is at work in {WORK}")
    workshop.configure()
    chosen = sample(options)
    by_path = collections.defaultdict(list)
    for number, mutant in enumerate(chosen):
        by_path[mutant.path].append((number, mutant))
    with concurrent.futures.ProcessPoolExecutor(CORES) as pool:
        kept = [pair for some in pool.map(workshop.without_errors, by_path, by_path.values(), chunksize=4) for pair in some]
    print(f"building {len(kept)} mutants; {len(chosen) - len(kept)} do not compile", flush=True)
    numbered = workshop.build(kept)
    earlier = [result for result in last_results() if result["outcome"] not in MISSED] if options.survivors or options.resume else []
    results = {-1 - index: result for index, result in enumerate(earlier)}
    if options.resume:
        settled = [result["identity"] for result in earlier]
        numbered = [pair for pair in numbered if identity(pair[1]) not in settled]
    hunt_all(numbered, len(chosen), options, results)
    keep(results.values())
    for result in sorted(results.values(), key=lambda result: (result["identity"][0], result["line"])):
        if result["outcome"] in MISSED:
            show(result)
    table(list(results.values()))


if __name__ == "__main__":
    main()
