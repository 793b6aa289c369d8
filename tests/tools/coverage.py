#!/usr/bin/python3 -B
"""coverage.py COUNTS.json, from gcovr: prints the lines and branches that tests reach, by folder, and the lines of the
library that they do not, but those for which unreached.txt has a reason."""

import collections
import itertools
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = "apps"


def reasons():
    """{path: {line, or "" for the whole file: why}}"""
    known = collections.defaultdict(dict)
    for entry in (ROOT / "tests/tools/unreached.txt").read_text().splitlines()[1:]:
        path, rest = entry.split(": ", 1)
        line, why = rest[1:].split("`: ", 1) if rest.startswith("`") else ("", rest)
        known[path][line] = why
    return known


def counts(file):
    """{path: {number of a line: [its count, the counts of its branches]}}. Headers and kernels are there under the names by which
    sources include them, and one source may be there under two."""
    merged = collections.defaultdict(dict)
    for source in json.load(open(file))["files"]:
        lines = merged[source["file"].removeprefix("include/braid/")]
        for line in source["lines"]:
            if not line.get("gcovr/noncode"):
                count, branches = lines.get(line["line_number"], (0, []))
                more = [branch["count"] for branch in line["branches"]]
                lines[line["line_number"]] = count + line["count"], [a + b for a, b in itertools.zip_longest(branches, more, fillvalue=0)]
    return merged


def main():
    known, folders, unreached = reasons(), collections.defaultdict(lambda: [[], []]), []
    for path, lines in sorted(counts(sys.argv[1]).items()):
        folder = path.split("/")[0]
        text = (ROOT / path).read_text().splitlines()
        for number, (count, branches) in sorted(lines.items()):
            for name in (folder, "all"):
                folders[name][0].append(count > 0)
                folders[name][1] += [taken > 0 for taken in branches]
            line = text[number - 1].strip()
            if count == 0 and folder != PROGRAMS and not {"", line} & known[path].keys():
                unreached.append(f"{path}:{number}: {line}")
    print(f"{'folder':<12}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}")
    for name, (lines, branches) in sorted(folders.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{name:<12}{len(lines):>8}{sum(lines) / len(lines):>9.1%}{len(branches):>10}{sum(branches) / max(len(branches), 1):>9.1%}")
    print(*["\nWithout a reason, no test reaches" if unreached else "\nEvery line that no test reaches has a reason.", *unreached], sep="\n")


if __name__ == "__main__":
    main()
