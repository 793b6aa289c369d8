#!/usr/bin/python3 -B
"""nn::Tokenizer against Hugging Face's tokenizers, where that is installed: random texts of all of Unicode.

usage: tokenizer_test.py GOLDEN [COUNT [SEED]]
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError:
    print("skipped: there is no module tokenizers")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
KINDS = ["gpt2", "llama3", "qwen", "digits"]
BLOCKS = [(0x20, 0x7F)] * 6 + [(0, 0x20), (0x80, 0x180), (0x2B0, 0x500), (0x590, 0x780), (0x900, 0xE00), (0x1100, 0x1200), (0x1680, 0x1690),
          (0x1800, 0x1820), (0x1E00, 0x2200), (0x2460, 0x2500), (0x3000, 0x3100), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xF900, 0xFB50),
          (0xFE00, 0x12000), (0x1D400, 0x1D800), (0x1F000, 0x1FA00), (0, 0x110000)]
PIECES = ["'s", "'S", "'ll", "'LL", "'\u017f", "'re", "'Ve", "\r\n", "\n", "\n\n", " ", "  ", "   ", "\t", "\u00a0", "\u180e", "\u2028", "\u0085",
          "\u3000", "12", "1234", "\u0663", "\u00bd", "<|endoftext|>", "<|end", "<s>", "</s>", "\u03a9!", "\u2126!", "e\u0301", "A\u030a",
          "\u1100\u1161\u11a8", "\u0344", "\u0958", "\ufb01", "\U0001f642", "a", "the", "hello", "\0"]


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(kind):
    made = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=kind == "gpt2")
    made.pre_tokenizer = {"gpt2": byte_level, "llama3": split(LLAMA3), "qwen": split(QWEN),
                          "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level])}[kind]
    made.normalizer = normalizers.NFC() if kind == "qwen" else None
    made.decoder = decoders.ByteLevel()
    texts = [path.read_text() for path in sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md"))]
    made.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=4000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                       special_tokens=["<|endoftext|>", "<s>"], show_progress=False))
    made.add_tokens([AddedToken("</s>", normalized=False), AddedToken("\u03a9!", normalized=True)])
    if kind == "llama3":
        made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))])
    return made


def character(rng):
    """One that Unicode has, as newer ones are another thing to older libraries."""
    while True:
        point = chr(rng.randrange(*rng.choice(BLOCKS)))
        if unicodedata.category(point) not in ("Cn", "Cs"):
            return point


def random_text(rng, words):
    def piece():
        kind = rng.random()
        if kind < 0.3:
            return rng.choice(PIECES)
        if kind < 0.5:
            return rng.choice(words) + rng.choice(["", " ", ",", "\n"])
        return character(rng) * rng.randrange(1, 9) if kind < 0.6 else "".join(character(rng) for _ in range(rng.randrange(1, 4)))
    return "".join(piece() for _ in range(rng.randrange(24)))


def main(golden, count=4000, seed=1):
    rng = random.Random(int(seed))
    words = (ROOT / "README.md").read_text().split()
    for kind in KINDS:
        tokenizer = train(kind)
        texts = [random_text(rng, words) for _ in range(int(count))]
        if kind == "qwen":  # whose order of the marks that came after Unicode 9 is not that of Unicode
            texts = [text for text in texts if tokenizer.normalizer.normalize_str(text) == unicodedata.normalize("NFC", text)]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name, kind)
            folder.mkdir()
            tokenizer.save(str(folder / "tokenizer.json"))
            cases = [{"text": text, "ids": tokenizer.encode(text).ids} for text in texts]
            (folder / "cases.json").write_text(json.dumps(cases))
            result = subprocess.run([golden, folder], capture_output=True, text=True)
        if result.stdout.splitlines()[-1:] != ["1 passed, 0 failed"]:
            sys.exit(f"FAILED: {kind}: {result.stdout}{result.stderr}")
        print(f"{kind}: {len(texts)} texts, the same ids")


if __name__ == "__main__":
    main(*sys.argv[1:])
