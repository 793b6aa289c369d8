"""Shared by the tests of the repository: the paths of sources and their includes."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ["core", "autograd", "nn", "mhc", "dist"]
OPTIONAL = ["dist/mpi"]  # not in braid.h


def sources(folder):
    """All C++ files below a folder, as paths relative to the root."""
    found = sorted(path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cpp"))
    assert found, f"no sources in {folder}"
    return found


def includes(path):
    """The included names of a file, in order, without brackets or quotes."""
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', (ROOT / path).read_text(), re.MULTILINE)


def included(path):
    """The files of the library that a file includes, as paths in the tree."""
    return {pathlib.Path(name).relative_to("braid") for name in includes(path) if name.startswith("braid/")}


def is_umbrella(path):
    """Headers that only include others, such as autograd/ops.h."""
    lines = [line for line in (ROOT / path).read_text().splitlines() if line and not line.startswith("//")]
    return all(line.startswith("#") for line in lines)
