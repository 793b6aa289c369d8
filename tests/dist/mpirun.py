#!/usr/bin/python3 -B
"""Runs programs as ranks on this machine, also as root and with more ranks than processors: mpirun.py ARGUMENTS_OF_MPIRUN"""

import os
import subprocess
import sys

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "ASAN_OPTIONS": "detect_leaks=0",  # MPI has some of its own
}


def command(*arguments):
    """-q suppresses mpirun's messages: a rank that fails writes its own."""
    return ["mpirun", "-q", *map(str, arguments)]


def start(*arguments, **options):
    return subprocess.Popen(command(*arguments), env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, errors="replace", **options)


def run(*arguments, timeout=300, **options):
    return subprocess.run(command(*arguments), env=os.environ | ENVIRONMENT, capture_output=True, text=True, errors="replace",
                          timeout=timeout, **options)


if __name__ == "__main__":
    sys.exit(subprocess.run(command(*sys.argv[1:]), env=os.environ | ENVIRONMENT).returncode)
