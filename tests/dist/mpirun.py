#!/usr/bin/python3 -B
"""Runs programs as ranks on this machine, also as root and with more ranks than processors: mpirun.py ARGUMENTS_OF_MPIRUN"""

import functools
import os
import re
import subprocess
import sys

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_hwloc_default_binding_policy": "none",  # Open MPI 5, 6
    "ASAN_OPTIONS": "detect_leaks=0",  # MPI has some of its own
}


@functools.cache
def quiet():
    """Open MPI 4's option that suppresses mpirun's paragraph about a rank that fails; later ones have none."""
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return ["-q"] if "(Open MPI) 4." in version else []


def command(*arguments):
    return ["mpirun", *quiet(), *map(str, arguments)]


def of_ranks(stderr):
    """What the ranks themselves wrote: without mpirun's paragraphs between two dashed lines."""
    return re.sub(r"^-{70,}\n.*?^-{70,}\n", "", stderr, flags=re.DOTALL | re.MULTILINE)


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
