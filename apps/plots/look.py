#!/usr/bin/python3 -B
"""Writes a page of what look measured, for any browser, all in one file: look.py NUMBERS.json PAGE.html"""
import argparse
import json
import pathlib

import report


def main():
    parser = argparse.ArgumentParser(prog="look.py", description=__doc__)
    parser.add_argument("numbers", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path)
    parser.error = report.fail
    options = parser.parse_args()
    try:
        data = json.loads(options.numbers.read_text())
        report.write(options.page, report.fill("look", data["name"], data))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        report.fail(f"{options.numbers}: {error}")


if __name__ == "__main__":
    main()
