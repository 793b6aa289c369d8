#!/usr/bin/python3 -B
"""Runs programs as ranks on this machine, also as root and with more ranks than processors: mpirun.py ARGUMENTS_OF_MPIRUN"""

import contextlib
import functools
import itertools
import os
import pathlib
import re
import shlex
import subprocess
import sys

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_memory": "^patcher",  # it replaces functions that ThreadSanitizer has replaced
    "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl": "^tcp",  # one machine, perhaps without a network
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_hwloc_default_binding_policy": "none",  # Open MPI 5, 6
    "ASAN_OPTIONS": "detect_leaks=0",  # MPI has some of its own
}


@functools.cache
def quiet():
    """Open MPI 4's option that suppresses mpirun's paragraph about a rank that fails; later ones have none."""
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return ["-q"] if "(Open MPI) 4." in version else []


def command(*arguments):
    return ["mpirun", *quiet(), *one_program(list(map(str, arguments)))]


def one_program(arguments):
    """`-n 2 a : -n 1 b` as one shell for each rank, since Open MPI 5.0.7 crashes at a colon."""
    if ":" not in arguments:
        return arguments
    ranks, cases = 0, ""
    for is_colon, part in itertools.groupby(arguments, lambda argument: argument == ":"):
        if not is_colon:
            _, count, *program = part
            ranks += int(count)
            cases += f"if [ $OMPI_COMM_WORLD_RANK -lt {ranks} ]; then exec {shlex.join(program)}; fi; "
    return ["-n", str(ranks), "sh", "-c", cases]


def of_ranks(stderr):
    """What the ranks themselves wrote: without mpirun's paragraphs between two dashed lines, warnings of its libevent, and empty lines."""
    return re.sub(r"^(-{70,}\n.*?^-{70,}|\[warn\] [^\n]*)?\n", "", stderr, flags=re.DOTALL | re.MULTILINE)


def children(process):
    """The ranks that mpirun started, in order: which is not always that of their process ids."""
    listed = subprocess.run(["ps", "--no-headers", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    by_rank = {}
    for pid in listed.split():
        with contextlib.suppress(OSError):  # it may have ended
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            if rank := re.search(rb"(?:^|\0)OMPI_COMM_WORLD_RANK=(\d+)", environment):
                by_rank[int(rank[1])] = int(pid)
    return [by_rank[rank] for rank in sorted(by_rank)]


class Ranks(subprocess.Popen):
    def communicate(self, **options):
        output, errors = super().communicate(**options)
        return output, of_ranks(errors)


def start(*arguments, **options):
    return Ranks(command(*arguments), env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 text=True, errors="replace", **options)


def run(*arguments, timeout=300, **options):
    result = subprocess.run(command(*arguments), env=os.environ | ENVIRONMENT, capture_output=True, text=True, errors="replace",
                            timeout=timeout, **options)
    result.stderr = of_ranks(result.stderr)
    return result


if __name__ == "__main__":
    sys.exit(subprocess.run(command(*sys.argv[1:]), env=os.environ | ENVIRONMENT).returncode)
