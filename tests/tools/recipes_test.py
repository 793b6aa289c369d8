#!/usr/bin/python3 -B
"""The recipes for package managers have the project's version and exactly the dependencies whose headers the library includes."""

import json
import re
import runpy
import sys
import types
import unittest.mock

from repository import LAYERS, ROOT, includes, sources

DEPENDENCIES = {"dlpack/dlpack.h": "dlpack", "fmt/format.h": "fmt", "hwy/highway.h": "highway", "mpi.h": "mpi",
                "nlohmann/json.hpp": "nlohmann-json", "oneapi/dnnl/dnnl.h": "onednn", "pcre2.h": "pcre2", "utf8proc.h": "utf8proc",
                "xxhash.h": "xxhash", "zip.h": "libzip"}
OTHER_NAMES = {"libhwy": "highway", "libutf8proc": "utf8proc", "nlohmann_json": "nlohmann-json", "openmpi": "mpi"}
TOOLS = {"cmake", "cxx", "lib", "ninja", "stdenv", "vcpkg-cmake", "vcpkg-cmake-config"}
SPACK = "spack/spack_repo/braid/packages/braid/package.py"


def read(path):
    return (ROOT / "packaging" / path).read_text()


def vcpkg_names():
    port = json.loads(read("vcpkg/vcpkg.json"))
    lists = [port["dependencies"], *(feature["dependencies"] for feature in port["features"].values())]
    return [entry if isinstance(entry, str) else entry["name"] for names in lists for entry in names]


NAMES = {
    "vcpkg": vcpkg_names(),
    "conan": re.findall(r'"([\w-]+)/\[', read("conan/conanfile.py")),
    "conan/debian.profile": re.findall(r"^([\w-]+)/", read("conan/debian.profile"), re.MULTILINE),
    "conda": re.findall(r"- (\S+)", read("conda/recipe.yaml").partition("  host:\n")[2].partition("  run:\n")[0]) + ["mpi"],
    "nix": re.findall(r"\w+", re.match(r"{([^?]*),", read("nix/package.nix")).group(1)),
    "spack": re.findall(r'depends_on\("([\w-]+)', read(SPACK)),
}


class Recipes(unittest.TestCase):
    def test_all_have_the_version_of_the_project(self):
        version = re.search(r"project\(braid VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        for path in ("vcpkg/vcpkg.json", "conan/conanfile.py", "conda/recipe.yaml", "nix/package.nix", SPACK):
            self.assertEqual(re.search(r'\bversion\W+"?([\d.]+)"', read(path)).group(1), version, path)

    def test_all_have_the_dependencies_of_the_library(self):
        used = {DEPENDENCIES[name] for layer in LAYERS for path in sources(layer) for name in includes(path) if name in DEPENDENCIES}
        self.assertEqual(used, set(DEPENDENCIES.values()))
        for recipe, names in NAMES.items():
            self.assertEqual({OTHER_NAMES.get(name, name) for name in names} - TOOLS, used, recipe)

    def test_messages_of_cmake_name_packages_of_debian(self):
        named = re.search(r"set\(packages (.*?)\)", (ROOT / "cmake/BraidFindLibrary.cmake").read_text(), re.DOTALL)[1].split()[1::2]
        debian = [line.split()[2] for line in read("packages.txt").splitlines() if not line.startswith("#")]
        self.assertGreater(len(named), 10)
        self.assertEqual(set(named) - set(debian), set())

    def test_the_package_of_spack_gives_its_variants_to_cmake(self):
        cmake, package = types.ModuleType("cmake"), types.ModuleType("package")
        cmake.CMakePackage = object
        for directive in ("depends_on", "license", "variant", "version"):
            setattr(package, directive, lambda *args, **options: None)
        with unittest.mock.patch.dict(sys.modules, {"spack_repo.builtin.build_systems.cmake": cmake, "spack.package": package}):
            Braid = runpy.run_path(ROOT / "packaging" / SPACK)["Braid"]
        braid = Braid()
        braid.define = braid.define_from_variant = lambda *names: names
        braid.spec = unittest.mock.Mock(satisfies=lambda variant: variant == "~mpi")
        self.assertIn(("CMAKE_DISABLE_FIND_PACKAGE_MPI", True), braid.cmake_args())
        self.assertIn(("CMAKE_DISABLE_FIND_PACKAGE_dnnl", False), braid.cmake_args())


if __name__ == "__main__":
    unittest.main()
