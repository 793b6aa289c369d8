#!/usr/bin/python3 -B
"""No file is forgotten: every source stands in its folder's list, every public header is installed and in braid.h."""

import re
import unittest

from repository import LAYERS, ROOT, includes, sources

LISTED = r"^\s+([\w/]+\.(?:h|cpp))$"


def is_public(path):
    return path.suffix == ".h" and path.parent.name != "kernels"


class Lists(unittest.TestCase):
    def test_every_source_and_public_header_stands_in_its_list(self):
        for layer in LAYERS:
            folder = f"braid/{layer}"
            listed = re.findall(LISTED, (ROOT / folder / "CMakeLists.txt").read_text(), re.MULTILINE)
            there = [str(path.relative_to(folder)) for path in sources(folder)
                     if path.suffix == ".cpp" or is_public(path)]
            self.assertEqual(sorted(listed), sorted(there), folder)

    def test_every_test_stands_in_its_list(self):
        for path in sources("tests"):
            if path.name.endswith("_test.cpp"):
                folder = ROOT / "tests" / path.parts[1]
                listed = re.findall(LISTED, (folder / "CMakeLists.txt").read_text(), re.MULTILINE)
                self.assertIn(str(path.relative_to(folder.relative_to(ROOT))), listed)

    def test_the_umbrella_includes_every_public_header(self):
        public = [str(path) for layer in LAYERS for path in sources(f"braid/{layer}") if is_public(path)]
        self.assertEqual(sorted(includes("braid/braid.h")), sorted(public))


if __name__ == "__main__":
    unittest.main()
