#!/usr/bin/python3 -B
"""Prints the lines and branches that tests reach, by folder, from gcovr's summary: coverage.py SUMMARY.json"""

import collections
import json
import sys


def main():
    counts = collections.defaultdict(collections.Counter)
    for file in json.load(open(sys.argv[1]))["files"]:
        for name in (file["filename"].split("/")[0], "all"):
            counts[name].update({key: value for key, value in file.items() if key.endswith(("_total", "_covered"))})
    print(f"{'folder':<12}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}")
    for name in sorted(counts, key=lambda name: (name == "all", name)):
        of = counts[name]
        print(f"{name:<12}{of['line_total']:>8}{of['line_covered'] / of['line_total']:>9.1%}"
              f"{of['branch_total']:>10}{of['branch_covered'] / max(of['branch_total'], 1):>9.1%}")


if __name__ == "__main__":
    main()
