#!/usr/bin/python3 -B
"""tests/mutation: every kind of mutant is found in a small program, compiles behind its switch, and changes what the program prints."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from repository import ROOT

sys.path.insert(0, str(ROOT / "tests" / "mutation"))
try:
    import mutants
except ImportError:
    print("skipped: needs the Python package clang, Debian's python3-clang")
    sys.exit(77)

PROGRAM = """\
#include <algorithm>
#include <cstdio>
#include <type_traits>
struct Settings { int step = 7; };
constexpr int kTwice = 2 * 3;
static int minus(int a, int b) { return a - b; }
static int clamp(const Settings& settings, int x) {
  if (x > 100) return 100;
  int sum = 0;
  for (int i = 0; i < x; ++i) {
    sum += settings.step;  // a comment, in which a < b is no comparison
    if (sum > 50) break;
  }
  return std::max(-sum, minus(sum, x));
}
int main() {
  Settings settings;
  settings.step = 3;
  for (int x : {0, 1, 16, 17, 18, 100, 101}) std::printf("%d ", clamp(settings, x));
  std::printf("%d %d\\n", kTwice, true ? 1 : 2);
}
"""
KINDS = {"arguments exchanged", "arithmetic", "assignment", "check left out", "comparison", "constant", "function", "negation",
         "setting replaced by its default", "sign", "statement left out"}
# A default that is set, a branch not taken, a number beyond the limit like the one after it, and a sum that is never 50.
SILENT = {("constant", "7 + 1"), ("constant", "2 + 1"), ("constant", "101 + 1"), ("comparison", "sum >= 50")}


class Mutation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        (cls.root / "program.cpp").write_text(PROGRAM)
        finder = mutants.Finder(cls.root, "program.cpp", ["-xc++", "-std=c++20"])
        cls.constant = finder.constant
        cls.found = list(enumerate(sorted(finder.mutants), 1))
        (cls.root / "planted.cpp").write_bytes(mutants.plant(PROGRAM.encode(), cls.found))
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-w", "-include", ROOT / "tests/mutation/mutant.h", "-o", cls.root / "planted",
                        cls.root / "planted.cpp"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def output(self, **environment):
        return subprocess.run([self.root / "planted"], env=os.environ | environment, capture_output=True, text=True, timeout=20).stdout

    def test_finds_every_kind_and_leaves_out_what_the_compiler_evaluates(self):
        self.assertEqual({mutant.kind for _, mutant in self.found}, KINDS)
        self.assertEqual(self.constant, 1)
        self.assertNotIn("2 / 3", [mutant.text for _, mutant in self.found])

    def test_changes_nothing_without_a_number(self):
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-o", self.root / "plain", self.root / "program.cpp"], check=True)
        self.assertEqual(self.output(), subprocess.run([self.root / "plain"], capture_output=True, text=True).stdout)

    def test_every_mutant_shows(self):
        usual = self.output()
        silent = {(mutant.kind, mutant.text) for number, mutant in self.found if self.output(BRAID_MUTANT=str(number)) == usual}
        self.assertEqual(silent, SILENT)

    def test_records_the_mutants_that_a_run_passes(self):
        reached = self.root / "reached"
        reached.write_bytes(bytes(len(self.found) + 1))
        self.output(BRAID_MUTANT_REACHED=str(reached))
        passed = reached.read_bytes()
        self.assertEqual([mutant.text for number, mutant in self.found if not passed[number]], ["2 + 1"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
