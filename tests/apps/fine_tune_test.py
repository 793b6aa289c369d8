#!/usr/bin/python3 -B
"""fine_tune learns a text and saves a folder from which it can go on. usage: fine_tune_test.py PROGRAM"""
import os
import pathlib
import re
import sys
import tempfile

from generate_test import with_tokenizer
from program import check, check_refused, run, write_text


def losses(program, *folders):
    result = run(program, *folders)
    check(result.returncode == 0 and result.stderr == "", f"{result}")
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)\n", result.stdout)]


def main(program, folder):
    text, model, out, further = write_text(folder), with_tokenizer("gpt2", folder), folder / "out", folder / "further"
    (model / "generation_config.json").write_text('{"eos_token_id": 60}')
    first, second = losses(program, model, text, out), losses(program, out, text, further)
    check(first[-1] < 0.8 * first[0] and abs(second[0] - first[-1]) < 0.5, f"{first} {second}")
    files = {path.name for path in out.iterdir()}
    check(files == {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}, f"{files}")
    check((out / "tokenizer.json").read_bytes() == (model / "tokenizer.json").read_bytes(), "another tokenizer")

    check_refused("expected a model's folder, a text and a folder", run(program, model, text))
    check_refused("gpt2: is the model's own folder", run(program, model, text, model))
    check_refused("none/config.json: cannot be opened", run(program, folder / "none", text, out))
    check_refused("none.txt: cannot be opened", run(program, model, folder / "none.txt", out))
    (folder / "short.txt").write_text("a" * 32)
    check_refused("short.txt: must have more than 32 tokens but has 32", run(program, model, folder / "short.txt", out))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(os.path.abspath(sys.argv[1]), pathlib.Path(folder))
