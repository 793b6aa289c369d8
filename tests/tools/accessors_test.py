#!/usr/bin/python3 -B
"""An accessor that returns a reference to a member has an overload for temporaries, which returns a value or is deleted:
`const Tensor& t = (x * 2.0).value();` would dangle without."""

import re
import unittest

from lists_test import PUBLIC
from repository import ROOT

# What these return outlives the object.
NOT_OWNED = {
    "autograd/var.h": ["x", "y", "dy"],  # of Applied, in spans
    "mhc/mixings/mixing.h": ["family"],
    "mhc/streams/stream_connection.h": ["self"],  # private
}
# `const Tensor& value() const;`, `Var& back();`, `std::span<const Var> get() const {`
ACCESSOR = re.compile(r"^ +(?! |static|friend|using|return|template)(?:(?:const )?[\w:<>, ]+&|std::span<.*>) "
                      r"(\w+)\([^()]*\)( const)?(&?)(?: \{|;)", re.MULTILINE)


def dangling(text, not_owned=()):
    """The accessors without an overload for temporaries. Those for lvalues alone, `T& f() &`, need none."""
    found = []
    for name, const, lvalue in ACCESSOR.findall(text):
        of_temporaries = rf"\b{name}\([^()]*\) &&"
        safe = lvalue and (not const or re.search(of_temporaries, text))
        if not safe and name not in not_owned:
            found.append(name)
    return found


class Accessors(unittest.TestCase):
    def test_none_dangles(self):
        for path in sorted(PUBLIC):
            self.assertEqual(dangling((ROOT / path).read_text(), NOT_OWNED.get(str(path), ())), [], path)

    def test_new_ones_are_found(self):
        self.assertEqual(dangling("  const Tensor& value() const { return value_; }\n"), ["value"])
        self.assertEqual(dangling("  Tensor& value() { return value_; }\n"), ["value"])
        self.assertEqual(dangling("  const Tensor& value(int i) const& { return value_; }\n"), ["value"])
        self.assertEqual(dangling("  std::span<const Var> get() const { return states_; }\n"), ["get"])
        self.assertEqual(dangling("  const Tensor& value() const& { return value_; }\n  Tensor value() && { return value_; }\n"), [])
        self.assertEqual(dangling("  std::span<const Var> get() const& { return s_; }\n  std::span<const Var> get() && = delete;\n"), [])
        self.assertEqual(dangling("  Tensor& mutable_value() &;\n"), [])


if __name__ == "__main__":
    unittest.main()
