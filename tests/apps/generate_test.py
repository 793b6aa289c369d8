#!/usr/bin/python3 -B
"""generate as a user runs it: generate_test.py GENERATE TRAIN_LM {runs|pretrained|bad-input}"""
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from program import check, check_refused, run
from tiny_run import TINY

MODELS = pathlib.Path(__file__).parents[1] / "golden/models"
BAD_NUMBERS = {"--tokens": ["0", "-1", "5x"], "--temperature": ["0", "-1", "nan", "inf"], "--top-k": ["-1", "1.5"], "--top-p": ["0", "1.1", "nan"],
               "--overlap": ["-0.01", "1.01", "nan", "x"], "--seed": ["-1", "x"], "--threads": ["-1", "1025"]}
SPEEDS = re.compile(r"\w+ read: (\d+) at [\d.]+/s; written: (\d+) at [\d.]+/s\n$")


def write_words(folder):
    words, rng = "the quick brown fox jumps over the lazy dog while seven wizards brew potions".split(), random.Random(1)
    text = folder / "text.txt"
    text.write_text(" ".join(rng.choice(words) for _ in range(2000)))
    return text


def generated(program, *flags, said=""):
    """The output as bytes, and the numbers of tokens read and written. `said`: what stderr says of the context."""
    result = subprocess.run([program, *map(str, flags)], capture_output=True, timeout=120)
    lines = result.stderr.decode().splitlines()
    check("; ".join(lines[:-1]) == said, f"{flags}: expected '{said}' on stderr, got {lines}")
    told = SPEEDS.search(result.stderr.decode())
    check(result.returncode == 0 and told, f"{flags}: {result.returncode} {result.stderr}")
    check(result.stdout.endswith(b"\n"), "no line break at the end")
    result.stdout.decode()  # throws at what is no UTF-8
    return result.stdout[:-1], int(told[1]), int(told[2])


def train(program, folder, name, *flags):
    result = run(program, *TINY, "--steps", 30, "--out", folder / name, *flags)
    check(result.returncode == 0, f"{name}: {result.stderr}")
    return folder / name


def check_text(program, flags, prompt):
    """The same text with and without a cache, and with another number of threads; others with another seed; its start up to a stop."""
    flags = [*flags, "--prompt", prompt]
    text, read, written = generated(program, *flags, "--tokens", 8)
    check(written == 8, f"{written} tokens")
    check(generated(program, *flags, "--tokens", 8, "--no-cache") == (text, read, written), "the cache changed the text")
    check(generated(program, *flags, "--tokens", 8, "--threads", 1) == (text, read, written), "threads changed the text")
    check(any(generated(program, *flags, "--tokens", 8, "--seed", seed)[0] != text for seed in range(2, 6)), "seeds change nothing")
    greedy = generated(program, *flags, "--tokens", 8, "--greedy")
    check(generated(program, *flags, "--tokens", 8, "--top-k", 1, "--seed", 5) == greedy, "the most likely is another one")
    check(generated(program, *flags, "--tokens", 8, "--top-p", "1e-9", "--temperature", "0.1") == greedy, "the most likely is another one")
    stop = text.decode()[2:4]
    check(generated(program, *flags, "--tokens", 8, "--stop", stop)[0].decode() == text.decode()[:text.decode().index(stop)], "--stop")
    return text, read


def beyond_the_context(program, run):
    """A run of 16 characters of context goes on when they are full; prompts may be longer."""
    flags, longer = ["--run", run, "--prompt", "the qui", "--tokens"], "the text is longer than the context of 16: "
    for number, share in {8: [], 4: ["--overlap", 0.25], 1: ["--overlap", 0], 16: ["--overlap", 1]}.items():
        again = f"{longer}whenever it was full, the last {number} were read again (--overlap)"
        text, read, written = generated(program, *flags, 300, *share, said=again)
        check((read, written, len(text)) == (7, 300, 300), f"{read} characters read, {written} written")
        check(generated(program, *flags, 300, *share, "--no-cache", said=again)[0] == text, "the cache changed the text")
        check(generated(program, *flags, 10, *share)[0] == text[:10], "16 characters fill the context")
        check(generated(program, *flags, 11, *share, said=again)[0] == text[:11], "17 characters are too many")
    again = f"{longer}whenever it was full, the last 8 were read again (--overlap)"
    long = "the quick brown fox"
    text, read, written = generated(program, *flags[:2], "--prompt", long, "--tokens", 50, said=f"{again}; the first 9 of the prompt were not read")
    check((read, written, len(text)) == (10, 50, 50), f"{read} characters read, {written} written")
    end = generated(program, *flags[:2], "--prompt", long[9:], "--tokens", 7)[0]
    check(text[:7] == end, "the start of the prompt changed the text")


def runs(program, trainer, folder):
    """Characters, tokens of a text, token files with and without a tokenizer; several connections."""
    text = write_words(folder)
    for kind in ("residual", "mhc", "skip", "gated"):
        characters = train(trainer, folder, kind, "--text", text, "--connection", kind)
        _, read = check_text(program, ["--run", characters], "the qui")
        check(read == 7, "characters of the prompt")
    beyond_the_context(program, characters)
    mixed = train(trainer, folder, "mixed", "--text", text, "--connection", "mhc", "--dtype", "bf16")
    check_text(program, ["--run", mixed], "the qui")
    texts = [[generated(program, "--run", mixed, *dtype, "--tokens", 16, "--temperature", 0.05, "--seed", seed) for seed in range(20)]
             for dtype in ([], ["--dtype", "bf16"], ["--dtype", "f32"])]
    check(texts[0] == texts[1] != texts[2], "a run of bf16 is read in bf16 unless --dtype says f32")
    train(trainer, folder, "states", "--text", text, "--checkpoint-every", 15, "--lr", 0.05)
    newest, older = folder / "states/checkpoint.safetensors", folder / "states/checkpoint.previous.safetensors"
    of_newest, of_older, of_folder = (generated(program, "--run", path, "--tokens", 16) for path in (newest, older, folder / "states"))
    check(of_folder == of_newest != of_older, "of a folder the newest checkpoint is read, and any by its file")
    newest.unlink()
    check(generated(program, "--run", folder / "states", "--tokens", 16) == of_older, "a file is that state")

    tokenizer = MODELS / "bpe/tokenizer.json"
    words = train(trainer, folder, "tokens", "--text", text, "--tokenizer", tokenizer)
    check((words / "tokenizer.json").read_bytes() == tokenizer.read_bytes(), "the tokenizer is not in the run's folder")
    _, read = check_text(program, ["--run", words / "best.safetensors"], "the quick")  # with the tokenizer beside it
    check(1 < read < 9, f"{read} tokens")
    again = ["--text", text, "--tokenizer", tokenizer, "--resume"]
    train(trainer, folder, "tokens", *again)
    other = folder / "other.json"
    other.write_text(json.dumps(json.loads(tokenizer.read_text())))
    check_refused("--resume: the run was started with another tokenizer",
                  run(trainer, *TINY, "--steps", 30, "--out", words, *again, "--tokenizer", other))
    (words / "tokenizer.json").write_text(other.read_text())
    check_refused("tokenizer.json: is not the tokenizer that the run was trained with", run(program, "--run", words))

    ids = [int(id) for id in range(5, 305)] * 4
    (folder / "ids.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    mapped = train(trainer, folder, "mapped", "--text", folder / "ids.bin", "--tokenizer", tokenizer)
    check_text(program, ["--run", mapped], "the quick")
    numbers = train(trainer, folder, "numbers", "--text", folder / "ids.bin")
    written, read, count = generated(program, "--run", numbers, "--tokens", 5)
    check(read == 1 and count == 5 and re.fullmatch(rb"(\d+ ){5}", written), f"{written}")
    _, read, count = generated(program, "--run", numbers, "--tokens", 5, "--prompt", "7 8  304")
    check(read == 3 and count == 5, f"{read} {count}")
    for bad in "the", "305", "-1", "7,8":
        check_refused(f"--prompt: must be ids from 0 to 304 with blanks between, for the model has no tokenizer, but has '{bad}'",
                      run(program, "--run", numbers, "--prompt", bad))
    on = train(trainer, folder, "on", "--init", mapped, "--text", folder / "ids.bin")  # with the tokenizer of the model
    check_text(program, ["--run", on], "the quick")


def with_tokenizer(family, folder, letters="abcdefghijklmnopqrstuvwxyz ,.\n"):
    """A copy of a golden model, of 61 ids, with a tokenizer of bytes: some letters, and parts of other characters."""
    target = folder / family
    shutil.copytree(MODELS / family, target)
    written = {" ": "\u0120", "\n": "\u010a"}
    vocab = {written.get(letter, letter): id for id, letter in enumerate(letters)}
    vocab |= {character: len(vocab) + i for i, character in enumerate("\u00c3\u00a9\u00e6\u0139\u00a5\u00ff")}  # C3 A9, E6 97 A5, FF
    (target / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": len(vocab), "content": "<|endoftext|>", "special": True}], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": []}}))
    return target


def pretrained_beyond_the_context(program, model):
    """A model whose texts do not end writes 100 tokens into a context of 32."""
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    (model / "tokenizer.json").write_text(json.dumps(tokenizer | {"added_tokens": []}))
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"eos_token_id": None}))
    again = "whenever it was full, the last 16 were read again (--overlap)"
    for prompt, unread in [("ab", 0), ("ab" * 17, 17)]:
        for share in [[], ["--overlap", "0.5"]]:
            slides = config["model_type"] != "gpt2" and not share
            said = "the text is longer than the context of 32: " + ("each token attended to at most the last 32" if slides else again)
            if unread and not slides:
                said += f"; the first {unread} of the prompt were not read"
            flags = ["--model", model, "--prompt", prompt, "--tokens", 100, *share]
            text = generated(program, *flags, said=said)
            check(text[1:] == (len(prompt) - (0 if slides else unread), 100), f"{text[1:]} tokens read and written")
            check(generated(program, *flags, "--no-cache", said=said) == text, "the cache changed the text")


def pretrained(program, _, folder):
    for path in sorted(MODELS.glob("*/config.json")):
        of_model = ["--model", path.parent, "--prompt", "3 5 7", "--tokens", 20, "--dtype", "bf16"]
        check(generated(program, *of_model) == generated(program, *of_model, "--no-cache"), f"{path.parent}: the cache changed what bf16 writes")
    for family in ("gpt2", "llama", "llama-tied", "qwen3"):
        model = with_tokenizer(family, folder)
        flags = ["--model", model, "--prompt", "hello, \u00e9", "--seed", 3]
        text, read, written = generated(program, *flags, "--tokens", 20)
        check(read == 9 and written <= 20, f"{read} tokens read, {written} written")
        check(generated(program, *flags, "--tokens", 20, "--no-cache") == (text, read, written), "the cache changed the text")
        seen = b"".join(generated(program, "--model", model, "--seed", seed, "--temperature", 5, "--tokens", 30)[0] for seed in range(4))
        check("\ufffd".encode() in seen, "bytes that are no characters must have been written")
        end = len(json.loads((model / "tokenizer.json").read_text())["model"]["vocab"])
        counts = [generated(program, *flags[:4], "--seed", seed, "--tokens", 22)[2] for seed in range(40)]
        check(min(counts) < 22, f"{end} ended no text")
        (model / "generation_config.json").write_text(json.dumps({"eos_token_id": list(range(61))}))
        check(generated(program, *flags)[::2] == (b"", 1), "every token ends a text")
        (model / "generation_config.json").unlink()
        config = (model / "config.json").read_text()
        (model / "config.json").write_text(json.dumps(json.loads(config) | {"eos_token_id": list(range(61)) + [2**32]}))
        check(generated(program, *flags)[::2] == (b"", 1), "every token ends a text by config.json")
        (model / "config.json").write_text(config)
        plain = (model / "tokenizer.json").read_text()
        template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["b"]}}}
        (model / "tokenizer.json").write_text(json.dumps(json.loads(plain) | {"post_processor": template}))
        check(generated(program, *flags, "--tokens", 1)[1] == 10, "a prompt begins with the token that the tokenizer adds")
        (model / "tokenizer.json").write_text(plain)
        pretrained_beyond_the_context(program, model)
        ids, read, written = generated(program, "--model", MODELS / family, "--prompt", "3 5 7", "--tokens", 6)  # without a tokenizer
        check(read >= 3 and 1 <= len(ids.split()) <= written <= 6 and all(0 <= int(word) < 61 for word in ids.split()), f"{ids} {read} {written}")


def bad_input(program, trainer, folder):
    text = write_words(folder)
    good = train(trainer, folder, "good", "--text", text)
    model = with_tokenizer("gpt2", folder)
    bare = folder / "bare"
    shutil.copytree(MODELS / "gpt2", bare)
    damaged = folder / "damaged"
    shutil.copytree(model, damaged)
    (damaged / "tokenizer.json").write_text((model / "tokenizer.json").read_text().replace('"merges": []', '"merges": ["a zz"]'))
    beyond = folder / "beyond"
    shutil.copytree(model, beyond)
    (beyond / "tokenizer.json").write_text((model / "tokenizer.json").read_text().replace('"a": 0', '"a": 61'))
    cut = folder / "cut"
    shutil.copytree(model, cut)
    (cut / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:-100])
    lost = folder / "lost"
    shutil.copytree(good, lost)
    for checkpoint in lost.glob("*.safetensors"):
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    empty = folder / "empty"
    empty.mkdir()
    for expected, case in [
        ("--model, --run: give one of them", []),
        ("--model, --run: give one of them", ["--model", model, "--run", good]),
        ("none/config.json: cannot be opened", ["--model", folder / "none"]),
        ("--prompt: must be ids from 0 to 60 with blanks between, for the model has no tokenizer, but has 'hello'", ["--model", bare, "--prompt", "hello"]),
        ("damaged/tokenizer.json: model.merges[0] is a merge of 'zz', which is no token", ["--model", damaged]),
        ("cut/model.safetensors", ["--model", cut]),
        ("none: there is no such folder or file", ["--run", folder / "none"]),
        ("holds no checkpoint", ["--run", empty]),
        ("gpt2: is a pretrained model, not a run of train_lm: give it as --model", ["--run", model]),
        ("good: is a run of train_lm, not a pretrained model: give it as --run", ["--model", good]),
        ("model.safetensors: the checkpoint has no checksum", ["--run", model / "model.safetensors"]),
        ("lost/checkpoint.safetensors", ["--run", lost]),
        ("--prompt: has the id 61 but the model knows 61", ["--model", beyond, "--prompt", "ab"]),
        ("--prompt: 'Q' (U+0051) in line 1 is none of the", ["--run", good, "--prompt", "the Quick"]),
        ("encode: the byte 0x5A is no token", ["--model", model, "--prompt", "Z"]),
        ("--prompt: must be UTF-8", ["--run", good, "--prompt", b"\xff"]),
        ("--stop: must not be empty", ["--run", good, "--stop", ""]),
        ("--dtype: f64 not in {f32,bf16}", ["--run", good, "--dtype", "f64"]),
        *((flag, ["--run", good, f"{flag}={value}"]) for flag, values in BAD_NUMBERS.items() for value in values),
    ]:
        result = subprocess.run([program, *[flag if isinstance(flag, bytes) else str(flag) for flag in case]], capture_output=True, timeout=60)
        result.stderr = result.stderr.decode()
        check_refused(expected, result)
        check(result.stdout == b"", f"{case}: something was written")


if __name__ == "__main__":
    generate, train_lm, case = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        {"runs": runs, "pretrained": pretrained, "bad-input": bad_input}[case](generate, train_lm, pathlib.Path(name))
