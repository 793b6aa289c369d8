#!/usr/bin/env python3
"""Records a call of a torch module, with which braid's nn::verify() compares a port. Needs torch.

    record_case.py my_file.py:make_case --out case.safetensors
    record_case.py package.module:make_case --out case.safetensors

make_case() returns (module, inputs) or (module, inputs, kwargs). The file holds, all computed in float64:
    in.*         the tensors among the arguments of forward(), by the names of its parameters
    param.*      parameters and floating-point buffers
    out.y        the output; out.y0, out.y1, .. of a tuple
    cotangent    random, one for each output that has a gradient (cotangent.y0, .. of a tuple)
    grad.*       the gradient of sum(out.y * cotangent) for each floating-point input and each parameter
    part.*       the output of each submodule (its first tensor), by its dotted name; NAME#2 for its second call
    part_grad.*  the gradient of that output
and as JSON in the metadata `case`, the file's name; `parts`, each part in the order of execution with the parts that it
was computed from; `buffers`, their names; and all arguments of forward() that are not tensors.
"""
import argparse
import contextlib
import copy
import ctypes
import importlib
import inspect
import json
import os
import pathlib
import struct
import sys

try:
    import torch
except ImportError:
    if __name__ != "__main__":
        raise
    sys.exit(print("record_case: needs torch: pip install torch", file=sys.stderr) or 2)

RESERVED = ("case", "parts", "buffers")
KINDS = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64"}


class CaseError(Exception):
    """The reason why a case cannot be recorded, in one line."""


@contextlib.contextmanager
def blaming(what):
    """Turns any exception into a CaseError that names `what` as its origin."""
    try:
        yield
    except Exception as error:
        raise CaseError(f"{what} raised {type(error).__name__}: {error}".partition("\n")[0]) from error


def save_safetensors(path, tensors, metadata):
    """Tensors of 8 bytes per element before those of 4, so that all are aligned; replaces the file when it is complete."""
    header, blobs, offset = {"__metadata__": {key: json.dumps(value) for key, value in metadata.items()}}, [], 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].element_size(), name)):
        t = tensors[name].contiguous()
        blob = ctypes.string_at(t.data_ptr(), t.nbytes)
        header[name] = {"dtype": KINDS[t.dtype], "shape": list(t.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    half = pathlib.Path(f"{path}.part")
    half.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    os.replace(half, path)


def leaves(name, value, first="{}.{}"):
    """(name, leaf) for all leaves of tuples, lists and dicts: x.0, x.key. `first` names the items of the outermost one."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (tuple, list)):
        items = enumerate(value)
    else:
        yield name, value
        return
    for key, item in items:
        yield from leaves(first.format(name, key), item)


def convert(name, t, dtype):
    """A copy that safetensors and braid can hold: floating point in `dtype`, everything else as integers of 32 bits."""
    if t.is_complex():
        raise CaseError(f"{name} is complex")
    t = t.detach().to("cpu", dtype if t.is_floating_point() else torch.int64, copy=True)
    if t.is_floating_point() and not t.isfinite().all():
        raise CaseError(f"{name} has NaN or Inf; a mask must be boolean, or have -1e9 for -inf")
    if not t.is_floating_point() and t.numel() and not -2**31 <= t.min() <= t.max() < 2**31:
        raise CaseError(f"{name} has values beyond 32 bits")
    return t.contiguous()


def bind(module, inputs, kwargs):
    """The tensors and the settings among the arguments of forward(), by name, and how to call it with other tensors."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        bound = inspect.signature(module.forward).bind(*inputs, **kwargs)
    except TypeError as error:
        raise CaseError(f"forward() of {type(module).__name__}: {error}") from None
    tensors, settings = {}, {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        named = value.items() if kind == inspect.Parameter.VAR_KEYWORD else [(name, value)]
        for name, value in named:
            found = {n: leaf for n, leaf in leaves(name, value) if isinstance(leaf, torch.Tensor)}
            tensors.update(found)
            if not found:
                settings[name] = value

    def rebuild(value, given):
        if isinstance(value, torch.Tensor):
            return next(given)
        if isinstance(value, dict):
            return type(value)((key, rebuild(item, given)) for key, item in value.items())
        if not isinstance(value, (tuple, list)):
            return value
        items = [rebuild(item, given) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)

    def call(module, given):
        given = iter(given)
        args = [rebuild(value, given) for value in bound.args]
        return module(*args, **{key: rebuild(value, given) for key, value in bound.kwargs.items()})

    return tensors, settings, call


class Parts:
    """Records by forward hooks the output of each submodule, its gradient, and the parts that it was computed from."""

    def __init__(self, module):
        self.values, self.gradients, self.sources = {}, {}, {}
        self.owners = {}  # of nodes of the graph
        self.handles = [part.register_forward_hook(self.hook(name)) for name, part in module.named_modules() if name]

    def hook(self, path):
        def after_forward(_module, _args, output):
            t = next((leaf for _, leaf in leaves("", output) if isinstance(leaf, torch.Tensor)), None)
            if t is None:
                return
            calls = sum(name.split("#")[0] == path for name in self.values)
            name = path if calls == 0 else f"{path}#{calls + 1}"
            self.values[name] = t.detach().clone()  # now, since later modules may change it in place
            self.sources[name] = self.origins(t.grad_fn)
            if t.grad_fn is not None:
                self.owners.setdefault(t.grad_fn, name)
            if t.requires_grad:
                t.register_hook(lambda gradient: self.gradients.update({name: gradient.detach().clone()}))

        return after_forward

    def origins(self, node):
        """The first parts found on each path back through the graph."""
        found, seen, ahead = set(), set(), [node]
        while ahead:
            node = ahead.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if node in self.owners:
                found.add(self.owners[node])
            else:
                ahead.extend(before for before, _ in node.next_functions)
        return [name for name in self.values if name in found]


def run(module, call, tensors):
    """One forward run on a copy, so that a second run starts from the same state."""
    module = copy.deepcopy(module)
    for p in module.parameters():
        p.requires_grad_(p.is_floating_point())
    inputs = {name: t.clone().requires_grad_(t.is_floating_point()) for name, t in tensors.items()}
    parts = Parts(module)
    with blaming("forward()"):
        output = call(module, [t.clone() for t in inputs.values()])  # clones, since it may change its inputs in place
    for handle in parts.handles:
        handle.remove()
    outputs = {name: leaf for name, leaf in leaves("y", output, first="{}{}" if isinstance(output, (tuple, list)) else "{1}")
               if leaf is not None}
    for name, leaf in outputs.items():
        if not isinstance(leaf, torch.Tensor):
            raise CaseError(f"output {name} is a {type(leaf).__name__}, not a tensor")
    return module, inputs, outputs, parts


def check_deterministic(outputs, parts, again, parts_again):
    bits = lambda t: t.detach().flatten().view(torch.uint8)
    for kind, one, other in (("part", parts.values, parts_again.values), ("output", outputs, again)):
        for name, value in one.items():
            if name not in other or not torch.equal(bits(value), bits(other[name])):
                raise CaseError(f"{kind} '{name}' differs between two runs: make the module deterministic, e.g. by eval()")


def collect(group, values, dtype):
    return {f"{group}.{name}": convert(f"{group}.{name}", t, dtype) for name, t in values.items()}


def backward(outputs, seed, dtype):
    """The random cotangents, and the gradients from backpropagating them."""
    wanted = {name: t for name, t in outputs.items() if t.requires_grad}
    if not wanted:
        raise CaseError("no output depends on a floating-point input or parameter")
    generator = torch.Generator().manual_seed(seed)
    cotangents = {name: torch.randn(t.shape, generator=generator, dtype=dtype) for name, t in wanted.items()}
    torch.autograd.backward(list(wanted.values()), list(cotangents.values()))
    return {"cotangent": cotangents["y"]} if list(outputs) == ["y"] else {f"cotangent.{n}": c for n, c in cotangents.items()}


def warn_of(module):
    """Says what a right port would differ from."""
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.training:
            warn(f"'{name}' computes with the statistics of the batch: call eval() first, unless the port does so, too")
        if isinstance(part, torch.nn.Hardsigmoid):
            warn(f"'{name}': the gradient of PyTorch's hardsigmoid is off by 3e-8; record nn.functional.relu6(x + 3) / 6 in its place")


def warn(text):
    print(f"record_case: warning: {text}", file=sys.stderr)


def record(module, tensors, call, seed, dtype):
    """All tensors of the case, and its metadata about parts and buffers."""
    tensors = {name: convert(f"in.{name}", t, dtype) if t.is_floating_point() else t.detach() for name, t in tensors.items()}
    with blaming("copying the module"):
        module = copy.deepcopy(module).to("cpu", dtype)
    buffers = {name: b.detach().clone() for name, b in module.named_buffers() if b.is_floating_point()}
    check = run(module, call, tensors)
    module, inputs, outputs, parts = run(module, call, tensors)
    check_deterministic(outputs, parts, *check[2:])
    warn_of(module)
    params = dict(module.named_parameters())
    for name in inputs:
        if name in params or name in buffers:
            raise CaseError(f"'{name}' is an input and a parameter: rename one of them")
    case = {**collect("in", inputs, dtype), **collect("param", {**params, **buffers}, dtype),
            **collect("out", outputs, dtype), **backward(outputs, seed, dtype), **collect("part", parts.values, dtype),
            **collect("part_grad", parts.gradients, dtype)}
    gradients = {name: torch.zeros_like(t) if t.grad is None else t.grad.to_dense()
                 for name, t in {**inputs, **params}.items() if t.is_floating_point()}
    case.update(collect("grad", gradients, dtype))
    return case, {"parts": [[name, *sources] for name, sources in parts.sources.items()], "buffers": list(buffers)}


def record_case(module, inputs, path, seed=0, settings={}, kwargs={}, dtype=torch.float64):
    """Writes the case of `module(*inputs, **kwargs)`; returns its tensors. The module is not changed."""
    tensors, given, call = bind(module, inputs, kwargs)
    for t in dict.fromkeys(tensors.values()):  # each once, by identity
        names = [name for name, other in tensors.items() if other is t]
        if len(names) > 1:
            warn(f"{', '.join(names)} are one tensor but will have a gradient each; record a module that takes it once")
    left_out = [name for name, buffer in module.named_buffers()
                if not buffer.is_floating_point() and not name.endswith("num_batches_tracked")]
    if left_out:
        warn(f"integer and boolean buffers are not recorded, give them to forward(): {', '.join(left_out)}")
    for name in RESERVED + tuple(given):
        if name in settings or name in RESERVED and name in given:
            raise CaseError(f"the setting '{name}' is taken")
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # for tensors that forward() creates
    try:
        case, structure = record(module, tensors, call, seed, dtype)
    finally:
        torch.set_default_dtype(before)
    metadata = {"case": pathlib.Path(path).stem, **given, **settings, **structure}
    for name, value in metadata.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise CaseError(f"the argument '{name}' is a {type(value).__name__}, neither a tensor nor a JSON value") from None
    save_safetensors(path, case, metadata)
    return case


def load_function(target):
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise CaseError(f"expected FILE.py:FUNCTION or MODULE:FUNCTION but got '{target}'")
    file = pathlib.Path(place) if place.endswith(".py") else None
    sys.path.insert(0, str(file.resolve().parent) if file else os.getcwd())
    with blaming(f"importing {place}"):
        return getattr(importlib.import_module(file.stem if file else place), name)


def make_case(target, seed):
    function = load_function(target)
    torch.manual_seed(seed)
    with blaming(target):
        made = function()
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not isinstance(made[0], torch.nn.Module):
        raise CaseError(f"{target} must return (module, inputs) or (module, inputs, kwargs)")
    return made if len(made) == 3 else (*made, {})


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise CaseError(message)


def main(args):
    parser = Parser(prog="record_case", description="Records a call of a torch module for braid's nn::verify().")
    parser.add_argument("target", metavar="FILE.py:FUNCTION", help="returns (module, inputs) or (module, inputs, kwargs)")
    parser.add_argument("--out", required=True, metavar="CASE.safetensors")
    parser.add_argument("--dtype", choices=["f64", "f32"], default="f64", help="the type in which the module runs (default f64)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cotangents, and of torch before FUNCTION (default 0)")
    options = parser.parse_args(args)
    module, inputs, kwargs = make_case(options.target, options.seed)
    dtype = torch.float64 if options.dtype == "f64" else torch.float32
    case = record_case(module, inputs, options.out, options.seed, kwargs=kwargs, dtype=dtype)
    count = lambda group: sum(name.startswith(group) for name in case)
    buffers = sum(name.startswith("param.") and name.replace("param.", "grad.", 1) not in case for name in case)
    print(f"{options.out}: {count('out.')} outputs, {count('param.') - buffers} parameters, "
          + (f"{buffers} buffers, " if buffers else "") + f"{count('grad.')} gradients, "
          f"{count('part.')} parts, {os.path.getsize(options.out) / 1024:.0f} KB")
    names = lambda group: ", ".join(sorted(name for name in case if name.startswith(group)))
    print(f"{names('in.')} -> {names('out.')}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (CaseError, OSError) as error:
        print(f"record_case: {error}", file=sys.stderr)
        sys.exit(2)
