#!/usr/bin/python3 -B
"""The golden program's exit codes and last line. usage: program_test.py PROGRAM"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

CASES = pathlib.Path(__file__).parent / "cases"


def golden(*args):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True)


def write_with(case, path, key, value):
    """A copy of a case with another setting."""
    data = case.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    assert key in header["__metadata__"], key
    header["__metadata__"] |= {key: value, "case": header["__metadata__"].get("case", json.dumps(case.stem))}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(CASES / "rms_norm.safetensors", self.folder)

    def last_line(self, result):
        return result.stdout.splitlines()[-1]

    def test_a_good_case_passes(self):
        result = golden(self.folder)
        self.assertEqual((self.last_line(result), result.returncode), ("1 passed, 0 failed", 0))

    def test_a_damaged_case_fails_and_the_others_still_run(self):
        (self.folder / "a.safetensors").write_bytes(b"damaged")
        result = golden(self.folder)
        self.assertRegex(result.stdout, r"(?m)^a .* FAIL load_safetensors: .*expected 8 bytes")
        self.assertEqual((self.last_line(result), result.returncode), ("1 passed, 1 failed", 1))

    def test_settings_out_of_range_fail_their_case_and_the_others_still_run(self):
        wrong = [("transformer_mhc", "heads", "0"), ("transformer_mhc", "layers", "1000000000"), ("transformer_mhc", "layers", "4000"),
                 ("transformer_mhc", "channels", "1e308"), ("transformer_mhc", "n", "9223372036854775807"),
                 ("transformer_mhc", "vocab", "-1"), ("transformer_mhc", "iterations", "1e308"), ("transformer_mhc", "heads", "true")]
        for number, (case, key, value) in enumerate(wrong):
            write_with(CASES / f"{case}.safetensors", self.folder / f"{number}.safetensors", key, value)
        result = golden(self.folder)
        self.assertEqual((self.last_line(result), result.returncode), (f"1 passed, {len(wrong)} failed", 1))

    def test_the_module_is_that_of_the_case_not_of_the_file(self):
        (self.folder / "rms_norm.safetensors").rename(self.folder / "linear.safetensors")
        self.assertEqual(golden(self.folder).returncode, 0)

    def test_only_selects_by_prefixes(self):
        shutil.copy(CASES / "linear.safetensors", self.folder)
        self.assertEqual(self.last_line(golden(self.folder, "--only", "rms,nothing")), "1 passed, 0 failed")
        self.assertEqual(self.last_line(golden(self.folder, "--only", "rms,lin")), "2 passed, 0 failed")

    def test_bad_arguments_give_one_line_and_exit_code_2(self):
        (self.folder / "empty").mkdir()
        for args in ([], ["/no/such/folder"], [self.folder / "empty"], [self.folder, "--only", "nothing"],
                     [self.folder, "--unknown"], [self.folder / "rms_norm.safetensors"]):
            result = golden(*args)
            self.assertEqual((result.returncode, result.stderr.count("\n"), result.stdout), (2, 1, ""), args)
            self.assertTrue(result.stderr.startswith("golden: "), result.stderr)

    def test_help_succeeds(self):
        self.assertEqual(golden("--help").returncode, 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
