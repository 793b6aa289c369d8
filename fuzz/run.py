#!/usr/bin/python3 -B
"""Runs fuzz targets for some seconds each, one process per core: several targets at a time, or several processes of one target:
run.py BUILD SECONDS TARGET ..

Starts from fuzz/corpus/TARGET; new inputs are kept in BUILD/corpus/TARGET, from which the next run continues. Prints one line
per target, and exits with 1 after a crash, whose input is in BUILD/crashes.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SEEDS = pathlib.Path(__file__).resolve().parent / "corpus"
SYMBOLS = "external_symbolizer_path=/usr/bin/addr2line:print_stacktrace=1"


def start(build, target, seconds, log, scratch):
    """One process; all processes of a target share their new inputs through the folder."""
    found, crashes = build / "corpus" / target, build / "crashes"
    for folder in (found, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/{target}-", "-print_final_stats=1", "-timeout=20",
               "-rss_limit_mb=4096", "-reload=1"]
    environment = {**os.environ, "TMPDIR": scratch, "BRAID_NUM_THREADS": "1", "ASAN_OPTIONS": SYMBOLS, "UBSAN_OPTIONS": SYMBOLS}
    return subprocess.Popen([build / "bin" / f"fuzz_{target}", *options, found, SEEDS / target], stdout=log, stderr=log, cwd=scratch,
                            env=environment)


def last(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def story(log):
    """The lines of a log that explain a crash."""
    lines = [line for line in log.splitlines() if re.search(r"ERROR|SUMMARY|runtime error|what\(\)|^broken|#\d.* in .*braid", line)]
    return "\n".join(line[:200] for line in lines[:16])


def fuzz(build, target, processes, seconds, scratch):
    """Prints the target's line; returns the inputs that crashed it."""
    logs = [open(pathlib.Path(scratch) / f"{target}-{process}.log", "w+") for process in range(processes)]
    running = [start(build, target, seconds, log, scratch) for log in logs]
    for process in running:
        process.wait()
    texts = [log.seek(0) or pathlib.Path(log.name).read_text(errors="replace") for log in logs]
    executions = sum(last(r"stat::number_of_executed_units: +(\d+)", text) or last(r"\n#(\d+)", text) for text in texts)
    coverage = max(last(r" cov: (\d+)", text) for text in texts)
    failed = [text for text, process in zip(texts, running) if process.returncode != 0]
    print(f"{target:<18}{executions:>10} executions  {coverage:>6} edges covered  {len(failed)} crashes", flush=True)
    inputs = {path for text in failed for path in re.findall(r"Test unit written to (\S+)", text)}
    for text in failed:
        print(story(text), file=sys.stderr)
    return sorted(inputs) or [f"{target}: ended without an input"] * bool(failed)


def main():
    build, seconds, *targets = sys.argv[1:]
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    cores = os.cpu_count()
    with tempfile.TemporaryDirectory(dir=memory) as scratch, concurrent.futures.ThreadPoolExecutor(cores) as pool:
        found = pool.map(lambda target: fuzz(pathlib.Path(build).resolve(), target, max(1, cores // len(targets)), seconds, scratch),
                         targets)
        crashes = [crash for some in found for crash in some]
    for crash in crashes:
        print(f"crash: {crash}", file=sys.stderr)
    sys.exit(1 if crashes else 0)


if __name__ == "__main__":
    main()
