#!/usr/bin/python3 -B
"""Compares what the pages show with what programs print: transcripts.py BIN [--update] [--quick]. BIN has the built programs.

A block without a language, a table of numbers or a paragraph is below a comment that says where its lines are from:

  <!-- run: build/bin/gradients -->            a part of what the command prints
  <!-- run -->                                 what the block's own lines `$ COMMAND` print, all of it
  <!-- run, within 1 %, noise 10: COMMAND -->  numbers with a decimal point may differ by 1 %, or by one in the last place; those with
                                               an exponent by a factor of 10. Others, such as counts, are equal
  <!-- run, exit 1: COMMAND -->                ends with exit code 1
  <!-- run, slow: COMMAND -->                  takes more than ten seconds: omitted by --quick, which is a part of `./dev test`
  <!-- not run, WHY: COMMAND -->               needs another machine, PyTorch or the like; WHY names it, with versions
  <!-- quotes FILE.. -->                       every line is in these files: in their text or in their string literals
  <!-- by hand: HOW -->                        printed by nothing

In all of them a line `..` stands for any lines, and `..` in a line for any text, such as a time. --update writes what differs into the pages.

cram, clitest and byexample run blocks as well, but compare text: they know no tolerance for numbers. None of them writes Markdown anew.
"""

import argparse
import dataclasses
import difflib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from repository import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MARK = re.compile(r"<!-- (run|not run|quotes|by hand)\b(.*) -->")
OPTION = re.compile(r", (?:(slow)|within ([\d.]+) %|noise ([\d.]+)|exit (\d+))")
NUMBER = r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\d])"
CELL = re.compile(r"\| *[-+]?\d[^|a-z]*(?:[a-zA-Zµ/%]{1,8})? *(?=\|)")  # a number, perhaps with its error and its unit


@dataclasses.dataclass
class Transcript:
    page: pathlib.Path
    begin: int      # the first line of what it shows, from 0
    lines: list
    kind: str       # of MARK; empty where there is no comment
    what: str = ""  # a command, a file or a reason
    within: float = 0
    noise: float = 1
    exit: int = 0
    slow: bool = False

    def __str__(self):
        return f"{self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page}:{self.begin + 1}"


def transcripts(page):
    """What a page shows below comments, and without one: blocks that have no language, and tables with numbers in three cells."""
    lines = [*page.read_text().split("\n"), ""]
    at = 0
    while at < len(lines):
        mark = MARK.fullmatch(lines[at])
        begin = end = at + 1 if mark else at
        if fence := re.match("```(.*)", lines[begin]):
            begin, end = begin + 1, lines.index("```", begin + 1)
            shown = mark or fence[1] in ("", "text", "console")
        elif mark or lines[begin].startswith("|"):
            end = lines.index("", begin)
            shown = mark or len(CELL.findall("\n".join(lines[begin:end]))) >= 3
        else:
            shown = False
        if shown:
            yield marked(Transcript(page, begin, lines[begin:end], mark[1] if mark else ""), mark)
        at = end + 1


def marked(transcript, mark):
    """The transcript with what its comment says."""
    rest = mark[2] if mark else ""
    while transcript.kind == "run" and (option := OPTION.match(rest)):
        slow, within, noise, code = option.groups()
        transcript.slow |= bool(slow)
        transcript.within = float(within) / 100 if within else transcript.within
        transcript.noise = float(noise) if noise else transcript.noise
        transcript.exit = int(code) if code else transcript.exit
        rest = rest[option.end():]
    transcript.what = rest.strip(" ,:")
    if not mark:
        return transcript
    if transcript.kind == "run" and rest[:1] not in ("", ":") or transcript.kind != "run" and not transcript.what:
        raise ValueError(f"{transcript}: cannot read {mark[0]}")
    if not any(transcript.lines):
        raise ValueError(f"{transcript}: nothing is below {mark[0]}")
    if transcript.kind == "run" and not transcript.what and not transcript.lines[0].startswith("$ "):
        raise ValueError(f"{transcript}: {mark[0]} names no command, and the block below does not begin with `$ COMMAND`")
    return transcript


# Comparison.

def close(shown, printed, within, noise):
    if shown == printed:
        return True
    a, b = float(shown), float(printed)
    if "e" in shown + printed:
        return a * b > 0 and max(a / b, b / a) <= max(noise, 1 + within)
    unit = 10.0 ** -len(shown.partition(".")[2])
    return within > 0 and "." in shown and abs(a - b) <= max(within * max(abs(a), abs(b)), 1.001 * unit)


@functools.cache
def pattern(line):
    """Of a line of a page: numbers are groups, `..` is any text, and spaces may be more or fewer."""
    parts = re.split(rf"(\.\.|{NUMBER}| +)", line.rstrip())
    return re.compile("".join(".*" if p == ".." else " +" if p.isspace() else f"({NUMBER})" if re.fullmatch(NUMBER, p) else re.escape(p)
                              for p in parts))


def words(line):
    return set(re.sub(NUMBER, "0", line).split())


def cost(line, printed, within, noise):
    """0 for lines that agree, 1 for those that only differ in numbers, up to 4 for others."""
    if match := pattern(line).fullmatch(printed.rstrip()):
        shown = pattern(line).fullmatch(line.rstrip())
        return 0 if all(close(a, b, within, noise) for a, b in zip(shown.groups(), match.groups())) else 1
    a, b = words(line), words(printed)
    return 1 + 3 * (1 - len(a & b) / len(a | b)) if a | b else 0


def rewritten(line, printed):
    """A line of a page with the numbers that were printed; its `..` remain."""
    match = pattern(line).fullmatch(printed.rstrip())
    if ".." not in line or not match:
        return printed.rstrip()
    numbers = iter(match.groups())
    return "".join(next(numbers) if re.fullmatch(NUMBER, part) else part for part in re.split(rf"(\.\.|{NUMBER})", line))


def updated(lines, printed, within=0, noise=1):
    """The lines of a page as they should be: those that agree with printed ones stay, the others are replaced, at the least cost."""
    ways = {}  # (lines done, printed lines done) -> (cost of the rest, lines before the next step, next step)
    for i in range(len(lines), -1, -1):
        any_lines = i < len(lines) and lines[i] == ".."
        for j in range(len(printed), -1, -1):
            choices = [] if i < len(lines) or j < len(printed) else [(0, [], None)]
            if any_lines:
                choices.append((ways[i + 1, j][0], [".."], (i + 1, j)))
            elif i < len(lines):
                choices.append((3 + ways[i + 1, j][0], [], (i + 1, j)))
            if j < len(printed):
                choices.append((ways[i, j + 1][0] + (0 if any_lines else 2), [] if any_lines else [printed[j].rstrip()], (i, j + 1)))
            if i < len(lines) and j < len(printed) and not any_lines:
                price = cost(lines[i], printed[j], within, noise)
                choices.append((price + ways[i + 1, j + 1][0], [rewritten(lines[i], printed[j]) if price else lines[i]], (i + 1, j + 1)))
            ways[i, j] = min(choices, key=lambda choice: choice[0])
    result, at = [], (0, 0)
    while at is not None:
        _, new, at = ways[at]
        result += new
    return result


# Where lines are from.

def literals(text):
    """A file's text, and that of its string literals, of which adjacent ones are joined."""
    joined = re.sub(r'"\s*\n?\s*"', "", text)
    return text + joined.replace('\\"', '"').replace("\\n", "\n")


@functools.cache
def output(command, folder, slow):
    """The lines that a command prints, those of stderr only if it fails, since progress is there; and its exit code. Quick commands run
    beside other tests, on one thread, on which results do not depend."""
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | ({} if slow else {"BRAID_NUM_THREADS": "1"})
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=7200 if slow else 600)
    return (done.stdout + (done.stderr if done.returncode else "")).splitlines(), done.returncode


def correct(transcript, folder):
    """The lines that the page should show. Throws ValueError when a command fails or a quoted line is not in its file."""
    if transcript.kind == "quotes":
        text = "".join(literals((ROOT / path).read_text()) for path in transcript.what.split())
        for line in transcript.lines:
            if not re.search(".*".join(map(re.escape, line.split(".."))), text):
                raise ValueError(f"not in {transcript.what}: {line}")
        return transcript.lines
    if transcript.what:
        sections = [(transcript.what, ["..", *transcript.lines, ".."])]
    else:
        starts = [i for i, line in enumerate(transcript.lines) if line.startswith("$ ")] + [len(transcript.lines)]
        sections = [(transcript.lines[a][2:], transcript.lines[a + 1:b]) for a, b in zip(starts, starts[1:])]
    result = []
    for command, lines in sections:
        printed, code = output(command, folder, transcript.slow)
        if code != transcript.exit:
            raise ValueError(f"exit code {code} instead of {transcript.exit} of {command}\n" + "\n".join(printed[-10:]))
        new = updated(lines, printed, transcript.within, transcript.noise)
        result += new[1:-1] if transcript.what else [f"$ {command}", *new]
    return result


def reason(transcript, quick):
    """Why a transcript is not run; empty if it is."""
    if transcript.kind != "run":
        return transcript.what if transcript.kind == "not run" else ""
    if transcript.slow and quick:
        return "slow"
    program = (transcript.what or transcript.lines[0].removeprefix("$ ")).split()[0]
    return "" if "/" in program or shutil.which(program) else f"{program} is not installed"


def workplace(folder, programs):
    """Makes of an empty folder one in which commands find sources and programs, and may write."""
    (folder / "build").mkdir()
    (folder / "build/bin").symlink_to(programs.resolve())
    for name in ("apps", "bench", "docs", "examples", "tests", "tools"):
        (folder / name).symlink_to(ROOT / name)


def main():
    parser = argparse.ArgumentParser(prog="transcripts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path, metavar="BIN")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    passed, different, wrong, not_run = 0, 0, 0, []
    with tempfile.TemporaryDirectory() as name:
        workplace(pathlib.Path(name), arguments.programs)
        for page in PAGES:
            lines, shift = page.read_text().split("\n"), 0
            for transcript in transcripts(page):
                if why := reason(transcript, arguments.quick):
                    not_run.append(f"not run: {transcript}: {why}")
                if why or transcript.kind not in ("run", "quotes"):
                    continue
                print(f"{transcript}: {transcript.what or transcript.lines[0]}", flush=True)
                try:
                    new = correct(transcript, name)
                except (ValueError, OSError, subprocess.TimeoutExpired) as error:
                    print(error)
                    wrong += 1
                    continue
                if new == transcript.lines:
                    passed += 1
                    continue
                different += 1
                print(*difflib.unified_diff(transcript.lines, new, "page", "printed", lineterm=""), sep="\n")
                begin = transcript.begin + shift
                lines[begin:begin + len(transcript.lines)] = new
                shift += len(new) - len(transcript.lines)
            if arguments.update and "\n".join(lines) != page.read_text():
                page.write_text("\n".join(lines))
    print(*not_run, sep="\n")
    print(f"{passed + different + wrong} run, {passed} passed, {different} differ{' and were updated' if arguments.update and different else ''}, "
          f"{wrong} failed; {len(not_run)} not run")
    return 1 if wrong or (different and not arguments.update) else 0


if __name__ == "__main__":
    sys.exit(main())
