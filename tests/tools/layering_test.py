#!/usr/bin/python3 -B
"""core <- autograd <- nn <- mhc <- dist: each folder includes only what stands to its left; SIMD and oneDNN stay where they live."""

import unittest

from repository import LAYERS, ROOT, includes, sources


class Layering(unittest.TestCase):
    def offenders(self, forbidden):
        """Lines `file includes name` for every include in the library that `forbidden(path, name)` holds for."""
        return [f"{path} includes {name}"
                for layer in LAYERS for path in sources(layer) for name in includes(path)
                if forbidden(path, name)]

    def test_each_folder_includes_only_what_stands_to_its_left(self):
        def to_the_right(path, name):
            if not name.startswith("braid/"):
                return False
            layer = name.split("/")[1]
            return layer not in LAYERS or LAYERS.index(layer) > LAYERS.index(path.parts[0])
        self.assertEqual(self.offenders(to_the_right), [])

    def test_only_kernels_and_mixings_know_of_simd(self):
        self.assertEqual(self.offenders(lambda path, name: name.startswith("hwy/") and (
            path.parent.name not in ("kernels", "mixings") or not path.name.endswith((".cpp", "-inl.h")))), [])

    def test_kernels_know_of_no_ops(self):
        self.assertEqual(self.offenders(lambda path, name: path.parent.name == "kernels" and "/ops/" in name), [])

    def test_only_gemm_knows_of_onednn(self):
        self.assertEqual(self.offenders(lambda path, name: name.startswith(("dnnl", "oneapi/")) and
                                        str(path) != "core/gemm.cpp"), [])

    def test_only_dist_knows_of_mpi(self):
        self.assertEqual(self.offenders(lambda path, name: name == "mpi.h" and path.parts[:2] != ("dist", "detail")), [])

    def test_json_stays_out_of_headers(self):
        self.assertEqual(self.offenders(lambda path, name: name.startswith("nlohmann/") and path.suffix == ".h"), [])

    def test_own_headers_are_spelled_from_the_root(self):
        self.assertEqual(self.offenders(lambda path, name: name.endswith(".h") and "/" not in name and
                                        (path.parent / name).suffix == ".h" and (ROOT / path.parent / name).exists()), [])


if __name__ == "__main__":
    unittest.main()
