#!/usr/bin/python3 -B
"""Every public name has a description, which the manual shows; docs/site/public_names.py defines public names. Needs Doxygen."""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from repository import LAYERS, ROOT

sys.path.insert(0, str(ROOT / "docs/site"))
import public_names
import reference

from lists_test import PUBLIC

PLANTED = """
namespace braid {
/// Described.
struct Planted {
  int described;  ///< yes
  int forgotten;
  struct Nested {
    int inner;
  };
  /// The first of two overloads describes both.
  void twice(int);
  void twice(double);
  void params(int visit);

 private:
  int hidden_;
};
enum class Letters { a, b };
void forgotten_too();
}
"""


class Docstrings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.headers = public_names.read_headers(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_all_public_headers_are_read(self):
        self.assertEqual({path for path in PUBLIC if str(path) not in self.headers} - {pathlib.Path("autograd/ops.h")}, set())

    def test_every_header_is_on_one_page_of_the_reference(self):
        for header in self.headers:
            pages = [page for page, pattern in reference.PAGES.items() if re.match(pattern, header)]
            self.assertEqual(len(pages), 1, header)
            self.assertTrue((ROOT / f"docs/reference/{pages[0]}.rst").exists(), pages[0])

    def test_every_public_name_has_a_description(self):
        self.assertGreater(sum(1 for names in self.headers.values() for _ in public_names.walk(names)), 1000)
        self.assertEqual(public_names.undescribed(self.headers), [])

    def test_undocumented_names_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for layer in LAYERS:
                pathlib.Path(folder, layer).mkdir()
            pathlib.Path(folder, "core/planted.h").write_text(PLANTED)
            found = public_names.undescribed(public_names.read_headers(f"{folder}/xml", pathlib.Path(folder)))
        names = [line.partition(": braid::")[2] for line in found]
        self.assertEqual(names, ["Planted::forgotten", "Planted::Nested", "Planted::Nested::inner", "Letters", "Letters::a", "Letters::b",
                                 "forgotten_too"])


if __name__ == "__main__":
    if not shutil.which("doxygen"):
        sys.exit(77)
    unittest.main()
