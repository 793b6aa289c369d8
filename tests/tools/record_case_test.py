#!/usr/bin/python3 -B
"""tools/record_case.py; skipped without torch."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/record_case.py"

try:
    import torch
    from torch import nn
    sys.path.insert(0, str(SCRIPT.parent))
    from record_case import CaseError, record_case
except ImportError:
    sys.exit(print("skipped: needs torch") or 77)

KINDS = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64}


def read(path):
    """The tensors and the metadata of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = {key: json.loads(value) for key, value in header.pop("__metadata__").items()}
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        t = torch.frombuffer(bytearray(data[begin:end]), dtype=KINDS[entry["dtype"]]) if end > begin else torch.empty(0)
        tensors[name] = t.reshape(entry["shape"])
    return tensors, metadata


class Calls(nn.Module):
    """Submodules called twice and changed in place, a tuple of outputs, settings, integers and buffers."""

    def __init__(self):
        super().__init__()
        self.lin, self.act, self.frozen = nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 3, bias=False)
        self.frozen.weight.requires_grad_(False)
        self.register_buffer("shift", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x, rows, *more, scale=1.0, mask=None, **rest):
        y = self.act(self.lin(self.lin(x))) + self.shift
        y = self.frozen(y)[rows] * scale + more[0] + rest["extra"]
        return y, {"sums": y.sum(-1), "largest": y.argmax(-1)}, None


class RecordCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "case.safetensors"
        torch.manual_seed(1)

    def record(self, module, *inputs, **options):
        record_case(module, inputs, self.path, **options)
        return read(self.path)

    def test_has_all_groups_of_a_call(self):
        module = Calls()
        before = {name: t.clone() for name, t in module.state_dict().items()}
        tensors, metadata = self.record(module, torch.randn(4, 3), torch.tensor([2, 0]), torch.randn(3),
                                        kwargs={"scale": 0.5, "mask": None, "extra": torch.ones(3)}, settings={"note": "mine"})
        names = lambda group: {name[len(group):] for name in tensors if name.startswith(group)}
        differentiated = {"x", "more.0", "extra", "lin.weight", "lin.bias", "frozen.weight"}
        self.assertEqual(names("in."), {"x", "rows", "more.0", "extra"})
        self.assertEqual(names("param."), {"lin.weight", "lin.bias", "frozen.weight", "shift"})
        self.assertEqual(names("out."), {"y0", "y1.sums", "y1.largest"})
        self.assertEqual(names("cotangent"), {".y0", ".y1.sums"})
        self.assertEqual(names("grad."), differentiated)
        self.assertEqual(names("part."), {"lin", "lin#2", "act", "frozen"})
        self.assertEqual(names("part_grad."), {"lin", "lin#2", "act", "frozen"})
        self.assertEqual(tensors["in.rows"].dtype, torch.int64)
        self.assertEqual(metadata, {"case": "case", "scale": 0.5, "mask": None, "note": "mine", "buffers": ["shift"], "parts": [
            ["lin"], ["lin#2", "lin"], ["act", "lin#2"], ["frozen", "act"]]})
        for name, t in module.state_dict().items():
            self.assertTrue(torch.equal(t, before[name]) and t.dtype == torch.float32, name)
        self.assertFalse(module.frozen.weight.requires_grad)

    def test_gradients_are_those_of_central_differences(self):
        module = Calls().double()
        tensors, _ = self.record(module, torch.randn(4, 3), torch.tensor([2, 0]), torch.randn(3), kwargs={"extra": torch.ones(3)})

        def loss(x):
            y, more, _ = module(x, tensors["in.rows"], tensors["in.more.0"], extra=tensors["in.extra"])
            return (y * tensors["cotangent.y0"]).sum() + (more["sums"] * tensors["cotangent.y1.sums"]).sum()

        x, step = tensors["in.x"], 1e-6
        with torch.no_grad():
            for i, j in ((0, 1), (2, 2), (1, 0)):
                e = torch.zeros_like(x)
                e[i, j] = step
                self.assertAlmostEqual(((loss(x + e) - loss(x - e)) / (2 * step)).item(), tensors["grad.x"][i, j].item(), 7)

    def test_parts_are_as_they_were_before_a_change_in_place(self):
        module = nn.Sequential(nn.Linear(3, 5), nn.ReLU(inplace=True), nn.Linear(5, 2))
        tensors, _ = self.record(module, torch.randn(4, 3))
        self.assertTrue((tensors["part.0"] < 0).any())
        self.assertTrue(torch.equal(tensors["part.1"], tensors["part.0"].relu()))
        passed = tensors["part_grad.1"] * (tensors["part.0"] > 0)
        self.assertTrue(torch.equal(tensors["part_grad.0"], passed))
        torch.testing.assert_close(tensors["grad.0.weight"], passed.T @ tensors["in.input"])

    def test_of_a_tuple_the_first_tensor_is_the_part(self):
        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(3, 4)

            def forward(self, x):
                return self.lstm(x)[0] * 2

        tensors, _ = self.record(Recurrent(), torch.randn(5, 2, 3))
        self.assertTrue(torch.equal(tensors["part.lstm"] * 2, tensors["out.y"]))
        self.assertTrue(torch.equal(tensors["part_grad.lstm"], tensors["cotangent"] * 2))

    def test_equal_seeds_give_equal_files(self):
        module, x = nn.Linear(3, 2), torch.randn(4, 3)
        files = []
        for seed in (1, 1, 2):
            self.record(module, x, seed=seed)
            files.append(self.path.read_bytes())
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[0], files[2])

    def test_f32_is_recorded_in_f32(self):
        tensors, _ = self.record(nn.Linear(3, 2), torch.randn(4, 3), dtype=torch.float32)
        self.assertEqual({t.dtype for t in tensors.values()}, {torch.float32})

    def test_statistics_are_those_before_the_call(self):
        tensors, metadata = self.record(nn.BatchNorm1d(3), torch.randn(4, 3))
        self.assertTrue(torch.equal(tensors["param.running_mean"], torch.zeros(3, dtype=torch.float64)))
        self.assertEqual(metadata["buffers"], ["running_mean", "running_var"])

    def test_the_example_is_what_the_script_records(self):
        out = self.folder / "port_a_module.safetensors"
        subprocess.run([sys.executable, "-B", SCRIPT, ROOT / "examples/port_a_module.py:make_case", "--out", out], check=True,
                       capture_output=True)
        tensors, metadata = read(out)
        expected, expected_metadata = read(ROOT / "examples/port_a_module.safetensors")
        self.assertEqual(metadata, expected_metadata)
        torch.testing.assert_close(tensors, expected, rtol=1e-12, atol=1e-12)

    def refusal(self, module, *inputs, **options):
        with self.assertRaises(CaseError) as caught:
            self.record(module, *inputs, **options)
        self.assertFalse(self.path.exists())
        return str(caught.exception)

    def test_refuses_with_a_reason(self):
        x = torch.randn(4, 3)
        dropout = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
        self.assertEqual(self.refusal(dropout, x), "part '1' differs between two runs: make the module deterministic, e.g. by eval()")
        self.record(dropout.eval(), x)
        self.path.unlink()
        self.assertEqual(self.refusal(nn.Linear(3, 2), x, x), "forward() of Linear: too many positional arguments")
        self.assertTrue(self.refusal(nn.Linear(2, 2), x).startswith("forward() raised RuntimeError: "))
        self.assertEqual(self.refusal(nn.Linear(3, 2), x / 0), "in.input has NaN or Inf; a mask must be boolean, or have -1e9 for -inf")
        self.assertEqual(self.refusal(Calls(), x, torch.tensor([0]), x[0], kwargs={"extra": torch.tensor(2**31)}),
                         "in.extra has values beyond 32 bits")
        self.assertEqual(self.refusal(nn.Identity(), torch.tensor([1])), "no output depends on a floating-point input or parameter")
        self.assertEqual(self.refusal(nn.Linear(3, 2), x, settings={"case": 1}), "the setting 'case' is taken")
        self.assertEqual(self.refusal(Calls(), x, torch.tensor([0]), x[0], kwargs={"mask": {1}, "extra": x[0]}),
                         "the argument 'mask' is a set, neither a tensor nor a JSON value")

    def command(self, *args):
        return subprocess.run([sys.executable, "-B", SCRIPT, *map(str, args)], capture_output=True, text=True, cwd=self.folder)

    def test_the_command_takes_files_and_modules(self):
        (self.folder / "mine.py").write_text("import torch\ndef make():\n    return torch.nn.Linear(3, 2), torch.ones(1, 3)\n")
        for target in ("mine.py:make", "mine:make"):
            result = self.command(target, "--out", self.path)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("case.safetensors: 1 outputs, 2 parameters, 3 gradients, 0 parts,", result.stdout)
            self.assertTrue(result.stdout.endswith("\nin.input -> out.y\n"), result.stdout)

    def test_the_command_prints_names_and_warns_of_a_tensor_given_twice(self):
        (self.folder / "mine.py").write_text("import torch\ndef lstm():\n    h = torch.ones(1, 2, 4)\n"
                                             "    return torch.nn.LSTM(3, 4), (torch.ones(5, 2, 3), (h, h))\n")
        result = self.command("mine.py:lstm", "--out", self.path)
        self.assertTrue(result.stdout.endswith("\nin.hx.0, in.hx.1, in.input -> out.y0, out.y1.0, out.y1.1\n"), result.stdout)
        self.assertEqual(result.stderr, "record_case: warning: hx.0, hx.1 are one tensor but will have a gradient each; record a module "
                                        "that takes it once\n")

    def test_the_command_names_buffers_that_are_not_recorded(self):
        (self.folder / "mine.py").write_text("import torch\ndef masked():\n    m = torch.nn.Linear(3, 2)\n"
                                             "    m.register_buffer('mask', torch.ones(2, dtype=torch.bool))\n    return m, torch.ones(1, 3)\n")
        self.assertEqual(self.command("mine.py:masked", "--out", self.path).stderr,
                         "record_case: warning: integer and boolean buffers are not recorded, give them to forward(): mask\n")

    def test_the_command_warns_of_what_a_right_port_would_differ_from(self):
        (self.folder / "mine.py").write_text("import torch\ndef gate():\n    return torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Hardsigmoid())"
                                             ", torch.randn(5, 3)\ndef evaluated():\n    m, x = gate()\n    return m[0].eval(), x\n")
        result = self.command("mine.py:gate", "--out", self.path)
        self.assertEqual(result.stderr.count("record_case: warning: '0' computes with the statistics of the batch: call eval() first"), 1)
        self.assertEqual(result.stderr.count("record_case: warning: '1': the gradient of PyTorch's hardsigmoid is off by 3e-8"), 1)
        result = self.command("mine.py:evaluated", "--out", self.path)
        self.assertEqual(result.stderr, "")
        self.assertIn(": 1 outputs, 2 parameters, 2 buffers, 3 gradients, 0 parts,", result.stdout)

    def test_errors_are_one_line_and_exit_code_2(self):
        (self.folder / "mine.py").write_text("def nothing():\n    return 1\ndef fails():\n    raise ValueError('two\\nlines')\n")
        for args, expected in (([], "required"), (["mine.py", "--out", "x"], "FILE.py:FUNCTION"),
                               (["none.py:f", "--out", "x"], "ModuleNotFoundError"), (["mine:f", "--out", "x"], "AttributeError"),
                               (["mine.py:nothing", "--out", "x"], "must return (module, inputs)"),
                               (["mine.py:fails", "--out", "x"], "mine.py:fails raised ValueError: two")):
            result = self.command(*args)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
            self.assertTrue(result.stderr.startswith("record_case: "), result.stderr)
            self.assertIn(expected, result.stderr)


if __name__ == "__main__":
    unittest.main()
