#!/usr/bin/python3 -B
"""Only core/platform and apps/platform know the operating system: other sources include headers of standard C++, of braid and
of the libraries in use. Tests are not checked, since they set limits and send signals.
"""

import re
import unittest

from repository import LAYERS, ROOT, includes, sources

# Of libraries, and of processors and compilers; by their first folder or as a whole.
OTHERS = {"CLI", "benchmark", "dlpack", "fmt", "hwy", "nlohmann", "oneapi", "toml++",
          "mpi.h", "pcre2.h", "utf8proc.h", "xxhash.h", "zip.h", "immintrin.h", "sanitizer"}
OWN = {"braid", "apps", "bench", "tests"}
PLATFORM = ("core/platform", "apps/platform")
SYSTEM = re.compile(r"__linux__|__APPLE__|_WIN32|__builtin_cpu_|\"/(proc|sys|dev)/")


def is_portable(path, name):
    """Whether a file may include a header. Those of standard C++ have names without a dot."""
    if (ROOT / path.parent / name).exists() or name.split("/")[0] in OTHERS | OWN:
        return True
    return re.fullmatch(r"[a-z_0-9]+", name) is not None and name != "csignal"


class Platform(unittest.TestCase):
    def elsewhere(self):
        files = [path for folder in [*LAYERS, "apps", "examples", "bench", "fuzz"] for path in sources(folder)]
        return [path for path in files if "/".join(path.parts[:2]) not in PLATFORM]

    def test_no_other_folder_includes_headers_of_a_system(self):
        self.assertEqual([f"{path} includes {name}" for path in self.elsewhere() for name in includes(path)
                          if not is_portable(path, name)], [])

    def test_no_other_folder_asks_which_system_it_is_or_names_its_files(self):
        self.assertEqual([f"{path} has {match[0]}" for path in self.elsewhere()
                          for match in SYSTEM.finditer((ROOT / path).read_text())], [])

    def test_their_headers_include_standard_cpp_alone(self):
        self.assertEqual([f"{path} includes {name}" for folder in PLATFORM for path in sources(folder)
                          for name in includes(path) if path.suffix == ".h" and "." in name], [])


if __name__ == "__main__":
    unittest.main()
