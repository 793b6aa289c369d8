#!/usr/bin/python3 -B
"""Runs port_a_module as a user would, from another folder. usage: port_a_module_test.py PROGRAM"""
import os
import pathlib
import sys
import tempfile

from program import check, check_refused, run

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def check_prints(expected, code, result):
    check(result.returncode == code, f"exit code {result.returncode}\n{result.stdout}{result.stderr}")
    check(expected in result.stdout, f"expected '{expected}' in\n{result.stdout}")


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_prints("\n14 of 14 agree within 1e-10\n", 0, run(program))
        check_prints("\n14 of 14 agree within 1e-10\n", 0, run(program, EXAMPLES / "port_a_module.safetensors"))
        check_prints("\nfirst part that differs: 'norm2' [2, 6, 16], computed from 'attention.o': closest is the output of op "
                     "'layer_norm' (#12 of 16), off by", 1, run(program, "--break", "eps"))
        check_prints("\nfirst part that differs: 'attention.o' [2, 6, 16],", 1, run(program, "--break", "heads"))
        check_refused("eps", run(program, "--break", "leg"))
        pathlib.Path("damaged").write_bytes(b"damaged")
        check_refused("damaged: ", run(program, "damaged"))
