#!/usr/bin/python3 -B
"""Every public name has a description, which the manual shows, and descriptions give shapes and dtypes, and say what throws, which tests show row by
row: see tests/throws.h. docs/site/public_names.py defines public names. Needs Doxygen."""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from repository import LAYERS, ROOT, sources

sys.path.insert(0, str(ROOT / "docs/site"))
import public_names
import reference

from lists_test import PUBLIC

AT_FIRST_CALL = "reads the environment at the first call in a process"
NOT_PROVOKED = {  # documented errors without a row, and why
    ("build_info", "ValueError"): AT_FIRST_CALL,
    ("instruction_set", "ValueError"): AT_FIRST_CALL,
    ("num_threads", "ValueError"): AT_FIRST_CALL,
    ("mhc::composed", "ValueError"): AT_FIRST_CALL,
}

SHAPELESS = {  # functions whose tensors have any shape
    "check_parameter_dtype": "compares dtypes alone",
    "check_same_dtype": "compares dtypes alone",
}

PLANTED = """
namespace braid {
/// Described.
struct Planted {
  Planted() = default;
  Planted(const Planted& other);
  explicit Planted(int forgotten);
  int operator()(int forgotten) const;
  int open(int forgotten) const;
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

ERRORS_PLANTED = """
namespace braid {
/// Throws ShapeError unless ok.
void check_shape(bool ok);
/// What calls throw. Methods throw Error. Values are no ValueError.
struct Planted {
  Planted();
  /// Throws ShapeError for one, or
  /// DTypeError.
  int call(int x) { return check_shape(x > 0), x; }
  /// Otherwise like call.
  void open(int x) { check<Error>(x); }
  void close() { throw FileError("where"); }
};

// All throw as Planted::call does.

/// Described.
void first();
void second();

/// Described.
void third(int x);
}
"""
ERRORS_PLANTED_SOURCE = """#include <x>

namespace braid {
namespace {
void second() { throw Hidden(); }
}  // namespace

Planted::Planted() : x{1} {
  check<ValueError>(false, "x");
}

void second() { check_shape(true); }  // documented

void third(int x,
           int y) {
  if (x)
    throw FileError("where");
}
}  // namespace braid
"""


SHAPES_PLANTED = """
namespace braid {
/// x [B, C], weight [C] -> [B, C].
Tensor scaled(const Tensor& x, const Tensor& weight);
/// x [B, C] -> [B, C], by a weight.
Tensor no_weight(const Tensor& x, const Tensor& weight);
/// x [B, C], weight [C].
Tensor no_result(const Tensor& x, List<Tensor> weight);
/// x[i] is in [0, 1]. Throws ShapeError unless x has the shape of y.
void no_shape(const std::vector<Tensor>& x);
/// Element by element.
Tensor same(const Tensor& x);
/// Also known as another; otherwise like same.
Tensor other(const Tensor& x);
/// The sum over the first axis.
Tensor first_axis(const Tensor& x);
/// The sum over an axis.
Tensor along(const Tensor& x, int axis);
/// 1 for each element, i32.
Tensor made(const Tensor& x);

/// x [B, C] -> [B, C].
struct Module {
  Tensor weight;  ///< the weight
  Tensor bias;    ///< [C]
  /// Scales.
  Tensor operator()(const Tensor& x) const;
  /// Scales by another.
  Tensor by(const Tensor& x) const;
};
}
"""
SHAPES_PLANTED_SOURCE = """
namespace braid {
Tensor scaled(const Tensor& x, const Tensor& weight) {
  return x.to(DType::i32);
}

Tensor made(const Tensor& x) {
  return x.to(DType::i32);
}
}  // namespace braid
"""


def rows():
    """{(name, exception)} of the calls of throws() in tests."""
    found = set()
    for path in sources("tests"):
        for exceptions, name in re.findall(r'\bthrows\w*<([\w:, ]+)>\(\s*"([^"]+)"', (ROOT / path).read_text()):
            found |= {(name, exception) for exception in exceptions.split(", ")}
    return found


def read_planted(folder, files):
    for layer in LAYERS:
        pathlib.Path(folder, layer).mkdir()
    for name, text in files.items():
        pathlib.Path(folder, "core", name).write_text(text)
    return public_names.read_headers(f"{folder}/xml", pathlib.Path(folder))


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
            found = public_names.undescribed(read_planted(folder, {"planted.h": PLANTED}))
        names = [line.partition(": braid::")[2] for line in found]
        self.assertEqual(names, ["Planted::Planted", "Planted::operator()", "Planted::open", "Planted::forgotten", "Planted::Nested",
                                 "Planted::Nested::inner", "Letters", "Letters::a", "Letters::b", "forgotten_too"])

    def test_docstrings_give_the_shape_of_every_tensor(self):
        function_of = {line: line.split(": ")[1].removeprefix("braid::") for line in public_names.shapeless(self.headers)}
        self.assertEqual([line for line, function in function_of.items() if function not in SHAPELESS], [])
        self.assertEqual(set(SHAPELESS) - set(function_of.values()), set())

    def test_docstrings_name_the_dtypes_of_results(self):
        self.assertEqual(public_names.dtypeless(self.headers), [])

    def test_shapes_and_dtypes_that_docstrings_lack_are_found(self):
        stripped = re.sub(r" \[[^][]*\]", "", (ROOT / "autograd/ops/rms_norm.h").read_text())
        files = {"planted.h": SHAPES_PLANTED, "planted.cpp": SHAPES_PLANTED_SOURCE, "rms_norm.h": stripped}
        with tempfile.TemporaryDirectory() as folder:
            headers = read_planted(folder, files)
            shapeless, dtypeless = public_names.shapeless(headers), public_names.dtypeless(headers, pathlib.Path(folder))
        self.assertEqual([line.partition(": braid::")[2] for line in shapeless],
                         ["no_weight: weight", "no_result: result", "no_shape: x", "first_axis: x", "first_axis: result", "Module::weight: field",
                          "Module::by: result", "rms_norm: x", "rms_norm: weight", "rms_norm: result", "rms_norm: x", "rms_norm: result"])
        self.assertEqual([line.partition(": braid::")[2] for line in dtypeless], ["scaled: i32"])

    def test_every_error_that_a_docstring_names_has_a_row(self):
        errors = public_names.documented_errors(self.headers)
        documented = {(path.removeprefix("braid::"), error) for path in errors for error in errors[path]}
        self.assertGreater(len(documented), 400)
        self.assertEqual(documented - rows(), set(NOT_PROVOKED))
        self.assertEqual(rows() - documented, set())

    def test_docstrings_name_every_error_that_functions_throw_themselves(self):
        self.assertEqual(public_names.undocumented_errors(self.headers), [])

    def test_the_definition_of_every_function_is_read(self):
        functions = {name.path for names in self.headers.values() for name in public_names.walk(names) if name.kind == "function"}
        missed = functions - {path for path, _ in public_names.bodies(self.headers)}
        self.assertEqual({path for path in missed if not re.search(r"::(~\w+|operator\W+|(\w+)::\2)$", path)},
                         {"braid::nn::Optimizer::apply"})  # pure

    def test_errors_that_docstrings_do_not_name_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            headers = read_planted(folder, {"planted.h": ERRORS_PLANTED, "planted.cpp": ERRORS_PLANTED_SOURCE})
            documented = public_names.documented_errors(headers, pathlib.Path(folder))
            found = public_names.undocumented_errors(headers, pathlib.Path(folder))
        fits = {"ShapeError", "DTypeError"}
        self.assertEqual(documented, {"braid::check_shape": {"ShapeError"}, "braid::Planted": {"Error"}, "braid::Planted::call": fits,
                                      "braid::Planted::open": fits, "braid::first": fits, "braid::second": fits})
        self.assertEqual(found, ["braid::Planted::Planted: ValueError", "braid::Planted::close: FileError", "braid::third: FileError"])


if __name__ == "__main__":
    if not shutil.which("doxygen"):
        sys.exit(77)
    unittest.main()
