#!/usr/bin/python3 -B
"""No file is forgotten: every source stands in its folder's list, every public header is installed and in braid.h."""

import re
import unittest

from repository import LAYERS, ROOT, includes, sources


def listed(folder):
    """The files that a folder's CMakeLists.txt names below HEADERS and SOURCES, one a line."""
    text = (ROOT / folder / "CMakeLists.txt").read_text()
    lists = re.findall(r"^  (?:HEADERS|SOURCES)\n((?:    .*\n)*)", text, re.MULTILINE)
    return [name for block in lists for name in block.split()]


def is_public(path):
    return path.suffix == ".h" and path.parent.name != "kernels"


class Lists(unittest.TestCase):
    def test_every_source_and_public_header_stands_in_its_list(self):
        for layer in LAYERS:
            folder = f"braid/{layer}"
            there = [str(path.relative_to(folder)) for path in sources(folder)
                     if path.suffix == ".cpp" or is_public(path)]
            self.assertEqual(sorted(listed(folder)), sorted(there), folder)

    def test_every_test_stands_in_its_list(self):
        for path in sources("tests"):
            if path.name.endswith("_test.cpp"):
                folder = f"tests/{path.parts[1]}"
                self.assertIn(str(path.relative_to(folder)), listed(folder))

    def test_the_umbrella_includes_every_public_header(self):
        public = [str(path) for layer in LAYERS for path in sources(f"braid/{layer}") if is_public(path)]
        self.assertEqual(sorted(includes("braid/braid.h")), sorted(public))


if __name__ == "__main__":
    unittest.main()
