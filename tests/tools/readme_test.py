#!/usr/bin/python3 -B
"""Code in the docs is compiled code: each C++ block names the example it comes from and stands in it, word for word.

A block is written as `<!-- examples/regression.cpp -->` on one line and ```cpp on the next.
"""

import re
import unittest

from repository import ROOT

PAGES = "README.md", "docs/verify.md"
BLOCK = re.compile(r"^(?:<!-- (examples/[\w/]+\.cpp) -->\n)?```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Readme(unittest.TestCase):
    def test_every_block_stands_in_the_example_that_it_names(self):
        blocks = [block for page in PAGES for block in BLOCK.findall((ROOT / page).read_text())]
        self.assertGreater(len(blocks), 6)
        for example, code in blocks:
            with self.subTest(code.partition("\n")[0]):
                self.assertTrue(example, "the line above the block must be <!-- examples/NAME.cpp -->")
                self.assertIn(code, (ROOT / example).read_text())


if __name__ == "__main__":
    unittest.main()
