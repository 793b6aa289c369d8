#!/usr/bin/python3 -B
"""Every source is in the list of its folder, every header that users need is installed, and reasons are of lines that exist."""

import pathlib
import re
import unittest

from repository import LAYERS, OPTIONAL, ROOT, included, includes, sources


def listed(folder):
    """The files that the CMakeLists.txt of a folder and of those below name after HEADERS, SOURCES and WITHOUT, one per line."""
    files = []
    for path in (ROOT / folder).rglob("CMakeLists.txt"):
        lists = re.findall(r"^  (?:HEADERS|SOURCES|WITHOUT)\n((?:    .*\n)*)", path.read_text(), re.MULTILINE)
        files += [str((path.parent / name).relative_to(ROOT / folder)) for block in lists for name in block.split()]
    return files


def is_public(path):
    """Headers in kernels/, detail/ and platform/, and those that end in -inl.h, are private to the library."""
    return path.suffix == ".h" and not path.name.endswith("-inl.h") and not {"kernels", "detail", "platform"} & set(path.parts)


def with_all_that_they_include(headers):
    reached, new = set(), set(headers)
    while new:
        reached |= new
        new = set().union(*map(included, new)) - reached
    return reached


PUBLIC = {path for layer in LAYERS for path in sources(layer) if is_public(path)}


class Lists(unittest.TestCase):
    def test_lists_hold_every_source_and_all_that_public_headers_include(self):
        installed = with_all_that_they_include(PUBLIC)
        for layer in LAYERS:
            there = [str(path.relative_to(layer)) for path in sources(layer) if path.suffix == ".cpp" or path in installed]
            self.assertEqual(sorted(listed(layer)), sorted(there), layer)

    def test_every_test_is_in_its_list(self):
        for path in sources("tests"):
            if path.name.endswith("_test.cpp"):
                folder = f"tests/{path.parts[1]}"
                self.assertIn(str(path.relative_to(folder)), listed(folder))

    def test_the_umbrella_includes_all_public_headers_and_no_other(self):
        umbrella = included("include/braid/braid.h")
        self.assertEqual(umbrella - PUBLIC, set())
        optional = {path for path in PUBLIC if str(path.parent) in OPTIONAL}
        self.assertEqual(PUBLIC - with_all_that_they_include(umbrella), optional)

    def test_the_module_includes_first_what_public_headers_include(self):
        reached = [pathlib.Path("include/braid/braid.h"), *with_all_that_they_include(included("include/braid/braid.h"))]
        others = {name for path in reached for name in includes(path) if not name.startswith("braid/")}
        self.assertEqual(set(includes("include/braid/braid.cppm")) - {"braid/braid.h"}, others)

    def test_lines_with_a_reason_are_in_their_files(self):
        for reasons in ("mutation/equivalent.txt", "tools/unreached.txt"):
            for entry in (ROOT / "tests" / reasons).read_text().splitlines()[1:]:
                path, line = re.match(r"([^:]*): (?:`(.*?)`(?: ->|: ))?", entry).groups()
                lines = {line.strip() for line in (ROOT / path).read_text().splitlines()}
                self.assertTrue(line is None or line in lines, entry)


if __name__ == "__main__":
    unittest.main()
