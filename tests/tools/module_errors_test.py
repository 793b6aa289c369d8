#!/usr/bin/python3 -B
"""A struct that is no module is refused in one sentence: compilers print a single error, which says what to write.

Usage: module_errors_test.py COMPILER.."""

import re
import subprocess
import sys
import unittest

from repository import ROOT

FIELD = ("braid: a field with parameters must be a Var, a struct with a public member template `void params(auto&& visit)`,"
         " or a std::vector, std::array or std::optional of these")
TENSOR = "braid: a Tensor has no gradient; what is differentiated is a Var: write Var(x)"
CONST = "braid: params() must not be const, because braid also sets the fields that it visits"
PRIVATE = "braid: params of this struct must be public, and callable as `void params(auto&& visit)`"

# What a user might write, and the sentence.
MODULES = {
    "missing": ("struct M { Var w; };", FIELD),
    "const": ('struct M { Var w; void params(auto&& visit) const { visit("w", w); } };', CONST),
    "private": ('class M { void params(auto&& visit) { visit("w", w); } public: Var w; };', PRIVATE),
    "another signature": ("struct M { Var w; void params(int) {} };", PRIVATE),
    "a field of another type": ('struct M { Var w; int n; void params(auto&& visit) { visit("n", n); } };', FIELD),
    "a tensor": ('struct M { Var w; Tensor t; void params(auto&& visit) { visit("t", t); } };', TENSOR),
    "a field without parameters":
        ('struct Child { int n; }; struct M { Var w; std::vector<Child> c; void params(auto&& visit) { visit("c", c); } };',
         FIELD),
    "a private child":
        ('class Child { void params(auto&&) {} }; struct M { Var w; Child c; void params(auto&& visit) { visit("c", c); } };',
         PRIVATE),
}
USES = {
    "gradient": "value_and_grad([](const M& m) { return m.w; })(M{})",
    "step": "nn::SGD().step(m, m)",
    "save": 'nn::save_module("m", m)',
    "sequence": "num_params(nn::Sequential(Layer{m}))",  # of any callables
}
HEADERS = ["autograd/value_and_grad.h", "nn/optim/sgd.h", "nn/saving.h", "nn/sequential.h"]


class ModuleErrors(unittest.TestCase):
    def errors(self, compiler, module, use):
        includes = "".join(f"#include <braid/{header}>\n" for header in HEADERS)
        layer = "" if use != "sequence" else "struct Layer : M { Var operator()(const Var& x) const { return x; } };"
        program = f"{includes}using namespace braid;\n{module}\n{layer}\nvoid f(M m) {{ (void)({USES[use]}); }}\n"
        run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT}/include", "-x", "c++", "-"],
                             input=program, capture_output=True, text=True)
        return re.findall(r"error: (.*)", run.stderr)

    def test_one_sentence_says_what_to_write(self):
        for compiler in COMPILERS:
            for number, (name, (module, sentence)) in enumerate(MODULES.items()):
                uses = ["gradient", "step", "save"][number % 3 :][:1] + ["sequence"] * (name in ("const", "private"))
                for use in uses:
                    errors = self.errors(compiler, module, use)
                    self.assertEqual(len(errors), 1, f"{compiler}, {name}, {use}: {errors}")
                    self.assertIn(sentence, errors[0])


COMPILERS = sys.argv[1:]
if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
