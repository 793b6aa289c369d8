"""A copy of the checkout in build-mutants/, in which mutants are planted and built."""

import collections
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import mutants
from clang import cindex

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build-mutants"
SOURCE, BUILD = WORK / "source", WORK / "build"
CORES = os.cpu_count()


def folder(path):
    return path.split("/")[0]


def parse_flags():
    """What libclang needs to read any file: the definitions and folders of all commands of the build."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    words = {word for command in commands for word in shlex.split(command["command"]) if re.match("-I|-D[A-Z_]", word)}
    folders = {f"-I{match[1]}" for command in commands for match in re.finditer(r"-isystem (\S+)", command["command"])}
    both = sorted(word.replace(str(SOURCE), str(ROOT)) for word in words | folders if "TESTS" not in word)
    return ["-xc++", "-std=c++20", "-w", "-DHWY_COMPILE_ONLY_STATIC", "-include", str(HERE / "mutant.h"), *both]


def without_errors(path, numbered):
    """Of the mutants of a file those with which it compiles; libclang finds most that do not in a second."""
    source, flags = (ROOT / path).read_bytes(), parse_flags()
    while numbered:
        planted = mutants.plant(source, numbered)
        unit = cindex.Index.create().parse(str(ROOT / path), args=flags, unsaved_files=[(str(ROOT / path), planted.decode())])
        errors = {error.location.line for error in unit.diagnostics
                  if error.severity >= cindex.Diagnostic.Error and str(error.location.file) == str(ROOT / path)}
        guilty = on_lines(planted, errors)
        if not guilty:
            break
        numbered = [pair for pair in numbered if pair[0] not in guilty]
    return numbered


def on_lines(planted, lines):
    """The mutants planted on the lines; for a line without any the last before it."""
    guilty, last = set(), None
    texts = planted.decode().split("\n")
    for number, text in enumerate(texts, 1):
        here = [int(found) for found in re.findall(r"braid_mutant\((\d+)\)", text)]
        if number in lines:
            guilty.update(here or ([last] if last is not None else []))
        last = here[-1] if here else last
    return guilty


def write(path, contents):
    """Files that stay the same keep their time, so that they are not compiled again."""
    if not path.is_file() or path.read_bytes() != contents:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def copy_tree(planted):
    """The checkout's files, with those that are planted in place of their own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)}
    for old in [os.path.relpath(os.path.join(top, name), SOURCE) for top, _, files in os.walk(SOURCE) for name in files]:
        if old not in names:
            (SOURCE / old).unlink()
    for name in names:
        if (ROOT / name).is_symlink():
            if not (SOURCE / name).is_symlink():
                (SOURCE / name).parent.mkdir(parents=True, exist_ok=True)
                (SOURCE / name).symlink_to(os.readlink(ROOT / name))
            continue
        write(SOURCE / name, planted.get(name) or (ROOT / name).read_bytes())
        shutil.copymode(ROOT / name, SOURCE / name)
    write(SOURCE / "tests/listener.cpp", (ROOT / "tests/listener.cpp").read_bytes() + (HERE / "listener.h").read_bytes())


def configure():
    if (BUILD / "compile_commands.json").is_file():
        return  # build() copies what has changed since
    copy_tree({})
    settings = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS_RELEASE": "-O1", "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
                "CMAKE_CXX_FLAGS": f"-include {SOURCE / 'tests/mutation/mutant.h'} -w",
                "BRAID_PRECOMPILE": "OFF", "BRAID_BUILD_BENCH": "OFF"}
    subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD, "-G", "Ninja", *(f"-D{name}={value}" for name, value in settings.items())],
                   check=True, stdout=subprocess.DEVNULL)


def build(numbered):
    """Builds all mutants at once, without those that do not compile. Returns the others."""
    while True:
        by_path = collections.defaultdict(list)
        for pair in numbered:
            by_path[pair[1].path].append(pair)
        planted = {path: mutants.plant((ROOT / path).read_bytes(), pairs) for path, pairs in by_path.items()}
        copy_tree(planted)
        log = WORK / "build.log"
        with open(log, "w") as out:
            done = subprocess.run(["cmake", "--build", BUILD, "--", "-k", "0"], stdout=out, stderr=out)
        if done.returncode == 0:
            return numbered
        lines = collections.defaultdict(set)
        for name, line in re.findall(r"((?:\w+/)+[\w.-]+):(\d+):\d+:", log.read_text()):
            for path in planted:
                if name.endswith(path):
                    lines[path].add(int(line))
        guilty = set().union(*(on_lines(planted[path], at) for path, at in lines.items())) if lines else set()
        if not guilty:
            sys.exit(f"dev: mutate: the build fails, see {log}")
        print(f"  {len(guilty)} do not compile", flush=True)
        numbered = [pair for pair in numbered if pair[0] not in guilty]
