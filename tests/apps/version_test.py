#!/usr/bin/python3 -B
"""--version of every program prints its name, braid's version, how that was built, and the instruction set in use, which
BRAID_ISA sets.

usage: version_test.py BIN VERSION
"""
import os
import pathlib
import re
import sys

from program import check, check_refused, run

NAMES = ("baseline", "avx2", "avx512", "amx", "neon")
# Examples without --version, to copy as they are, and parts of tests.
WITHOUT = {"fine_tune", "gru", "load_run", "lora", "pretrained_copy", "dist_ends", "dist_ranks"}


def programs(bin):
    """The programs that have been built, in alphabetical order."""
    for path in sorted(pathlib.Path(bin).iterdir()):
        if path.is_file() and os.access(path, os.X_OK) and path.suffix == "" and path.name not in WITHOUT:
            if not path.name.endswith("_tests") and not path.name.startswith("fuzz_"):
                yield path


def about(program, **environment):
    """Runs --version without a choice of instruction set but this one."""
    inherited = {name: value for name, value in os.environ.items() if name != "BRAID_ISA"}
    return run(program, "--version", env=inherited | environment)


def main(bin, version):
    found = list(programs(bin))
    check(found, f"no programs in {bin}")
    for program in found:
        result = about(program)
        lines = result.stdout.split("\n")
        expected = [re.escape(f"{program.name} {version}"), re.escape(f"braid {version}, ") + r"[^,]+", "compiler: .+",
                    r"libraries: fmt \S+, Highway \S+, .+", r"instruction set: (\w+) \(\w+\), best \1", ""]
        check(result.returncode == 0 and result.stderr == "", f"{program.name}: {result}")
        check(len(lines) == len(expected) and all(map(re.fullmatch, expected, lines)), f"{program.name}: {result.stdout}")

    program = str(found[0])
    check_refused("version was given a disallowed flag override", run(program, "--version=5"))
    names = re.search("must be one of (.+) on this processor", about(program, BRAID_ISA="none").stderr).group(1)
    has = names.split(", ")
    check(f"best {has[-1]}\n" in about(program).stdout, f"not {has[-1]}")
    for name in has:
        check(f"instruction set: {name} (" in about(program, BRAID_ISA=name).stdout, f"not {name}")
    for name in [*(name for name in NAMES if name not in has), "", "AVX2", "avx2\n"]:
        # Errors are one line: a line break is printed as a space.
        message = f"BRAID_ISA: must be one of {names} on this processor but is '{name}'".replace("\n", " ")
        check_refused(message, about(program, BRAID_ISA=name))
    print(f"{len(found)} programs; {names}")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2])
