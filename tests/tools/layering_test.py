#!/usr/bin/python3 -B
"""The order of the library: modules, and the folders inside them; only some folders include SIMD, oneDNN, MPI and JSON.

layering_test.py --graph prints which folders each folder includes, lowest first.
"""

import sys
import unittest

from repository import LAYERS, ROOT, included, includes, is_umbrella, sources

# Folders that count as another: tensors call the kernels in core/kernels, which take tensors (CONTRIBUTING.md).
ONE_FOLDER = {"core/kernels": "core"}


def folder(path):
    """The folder of a file; a detail/ counts as its parent."""
    parts = [part for part in path.parts[:-1] if part != "detail"]
    return ONE_FOLDER.get("/".join(parts), "/".join(parts))


def graph():
    """For each folder of the library the others it includes. Umbrella headers, which only include, are left out."""
    edges = {}
    for path in (path for layer in LAYERS for path in sources(layer) if not is_umbrella(path)):
        edges.setdefault(folder(path), set()).update({folder(other) for other in included(path)} - {folder(path)})
    return edges


def in_order(edges):
    """The folders, each after those that it includes. Omits folders that are part of a cycle or include one."""
    order = []
    while new := sorted(name for name in edges if name not in order and edges[name] <= set(order)):
        order += new
    return order


# Here a source may include files that include its header: the -inl.h files of a kernel take its call structs, and a Family
# of mixings the traits of a Mixing.
CIRCULAR = {"autograd/kernels", "mhc/kernels", "mhc/mixings"}


def in_circles(edges):
    """The names on a cycle, or between two."""
    left = set(edges)
    while ends := {name for name in left if not edges[name] & left or not any(name in edges[other] for other in left)}:
        left -= ends
    return left


class Layering(unittest.TestCase):
    def offenders(self, forbidden):
        """Lines `file includes name` for every include in the library that `forbidden(path, name)` holds for."""
        return [f"{path} includes {name}"
                for layer in LAYERS for path in sources(layer) for name in includes(path)
                if forbidden(path, name)]

    def test_each_module_includes_only_those_to_its_left(self):
        def to_the_right(path, name):
            if not name.startswith("braid/"):
                return False
            layer = name.split("/")[1]
            return (layer not in LAYERS or LAYERS.index(layer) > LAYERS.index(path.parts[0]) or
                    (path.parts[0], layer) == ("dist", "mhc"))  # beside each other
        self.assertEqual(self.offenders(to_the_right), [])

    def test_folders_include_each_other_in_one_direction(self):
        edges = graph()
        self.assertEqual({name: edges[name] for name in edges if name not in in_order(edges)}, {})

    def test_sources_with_their_headers_include_each_other_in_one_direction(self):
        edges = {}
        for path in (path for layer in LAYERS for path in sources(layer)):
            if not is_umbrella(path) and folder(path) not in CIRCULAR:
                stem = path.with_suffix("")
                edges.setdefault(stem, set()).update({other.with_suffix("") for other in included(path)} - {stem})
        self.assertEqual({str(stem) for stem in in_circles(edges)}, set())

    def test_only_the_library_includes_detail(self):
        self.assertEqual([f"{path} includes {name}"
                          for folder in ("apps", "examples", "bench") for path in sources(folder) for name in includes(path)
                          if name.startswith("braid/") and "/detail/" in name], [])

    def test_only_kernels_and_mixings_include_simd(self):
        self.assertEqual(self.offenders(lambda path, name: name.startswith("hwy/") and (
            not {"kernels", "mixings"} & set(path.parts) or not path.name.endswith((".cpp", "-inl.h"))) and
            str(path) not in ("core/instruction_set.cpp", "core/build_info.cpp")), [])  # choice of code, version

    def test_kernels_include_no_ops(self):
        self.assertEqual(self.offenders(lambda path, name: path.parent.name == "kernels" and "/ops/" in name), [])

    def test_only_one_source_includes_onednn_and_build_info_for_its_version(self):
        self.assertEqual(self.offenders(lambda path, name: name.startswith(("dnnl", "oneapi/")) and
                                        str(path) not in ("core/products/detail/gemm_by_onednn.cpp", "core/build_info.cpp")), [])

    def test_only_dist_knows_of_mpi(self):
        self.assertEqual(self.offenders(lambda path, name: name == "mpi.h" and path.parts[:2] != ("dist", "mpi")), [])

    def test_json_stays_out_of_headers(self):
        self.assertEqual(self.offenders(lambda path, name: name.startswith("nlohmann/") and path.suffix == ".h"), [])

    def test_own_headers_are_spelled_from_the_root(self):
        self.assertEqual(self.offenders(lambda path, name: name.endswith(".h") and "/" not in name and
                                        (path.parent / name).suffix == ".h" and (ROOT / path.parent / name).exists()), [])


def print_graph():
    edges = graph()
    for name in in_order(edges) + sorted(set(edges) - set(in_order(edges))):
        print(f"{name:28} <- {', '.join(sorted(edges[name]))}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--graph"]:
        print_graph()
    else:
        unittest.main()
