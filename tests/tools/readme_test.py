#!/usr/bin/python3 -B
"""Code in the docs is compiled code: each C++ block names its source file and is a verbatim part of it.

A block is written as `<!-- examples/regression.cpp -->` on one line and ```cpp on the next.
"""

import re
import unittest

from repository import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?:<!-- ((?:apps|bench|examples)/[\w/]+\.\w+) -->\n)?```(cpp|cmake)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Readme(unittest.TestCase):
    def test_every_block_is_in_the_source_that_it_names(self):
        blocks = [(page.name, *block) for page in PAGES for block in BLOCK.findall(page.read_text())]
        self.assertGreater(len(blocks), 40)
        for page, source, language, code in blocks:
            with self.subTest(f"{page}: {code.partition(chr(10))[0]}"):
                if language == "cmake" and not source:
                    continue  # lines for the reader's project
                self.assertTrue(source, "the line above the block must be <!-- examples/NAME.cpp --> or name a file of apps/ or bench/")
                self.assertIn(code, (ROOT / source).read_text())

    def test_code_is_marked_as_such(self):
        """The test above would miss C++ in a block without a language."""
        for page in PAGES:
            for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
                if not language:
                    self.assertNotRegex(block, r"(?m)^\s*(#include|const auto|auto |struct \w+ \{|return .*;$)", page.name)

    def test_no_line_of_prose_begins_with_a_percent_sign(self):
        """MyST takes such a line for a comment: the site lacks it."""
        for page in PAGES:
            prose = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
            self.assertNotRegex(prose, r"(?m)^ *%", page.name)


if __name__ == "__main__":
    unittest.main()
