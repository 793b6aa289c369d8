#!/usr/bin/env python3
"""Times a DeepSeek-V4 of nanowhale's shape in braid and in transformers by turns: bench/deepseek_v4.py [--rounds 3] [--context 512]

110 million parameters: 8 layers, 320 channels, 4 streams, 4 experts and a shared one, 129,280 token ids. Prints a training step
(forward, backward, clipping, AdamW) with its peak of memory, and tokens a second of decoding. Needs torch, transformers,
build/bin/train_lm and build/bin/generate.
"""
import argparse
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(__file__).resolve().parents[1] / "build/bin"
DECODED = 64


def nanowhale():
    import torch
    import transformers

    torch.manual_seed(1)
    kinds = ["heavily_compressed_attention", "compressed_sparse_attention"] * 4
    config = transformers.DeepseekV4Config(
        vocab_size=129280, hidden_size=320, num_hidden_layers=8, num_attention_heads=8, head_dim=96, partial_rotary_factor=1 / 3,
        q_lora_rank=160, o_groups=2, o_lora_rank=80, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=640, hc_mult=4,
        hc_sinkhorn_iters=2, tie_word_embeddings=True, layer_types=kinds, mlp_layer_types=["moe"] * 8, index_n_heads=4,
        index_head_dim=32, index_topk=64, max_position_embeddings=2048, num_nextn_predict_layers=0)
    return transformers.DeepseekV4ForCausalLM(config)


def theirs(folder, arguments):
    """In a process of its own, for the sake of its memory."""
    import torch
    import transformers

    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    seconds = []
    for _ in range(arguments.steps):
        tokens = torch.randint(129280, (1, arguments.context + 1))
        start = time.perf_counter()
        logits = model(tokens[:, :-1], use_cache=False).logits
        torch.nn.functional.cross_entropy(logits[0], tokens[0, 1:]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # GB
    prompt = torch.randint(129280, (1, 1))
    settings = {"max_new_tokens": DECODED, "min_new_tokens": DECODED, "do_sample": False}
    model.generate(prompt, **settings | {"max_new_tokens": 2, "min_new_tokens": 2})
    start = time.perf_counter()
    model.eval().generate(prompt, **settings)
    print(json.dumps([statistics.median(seconds[1:]), memory, DECODED / (time.perf_counter() - start)]))


def ours(folder, arguments, out):
    threads = ["--threads", str(arguments.threads)]
    command = [BIN / "train_lm", "--init", folder, "--text", folder / "text.bin", "--batch", "1", "--context", str(arguments.context),
               "--steps", str(arguments.steps), "--eval-every", "1000000", "--checkpoint-every", "1000000", "--lr", "1e-4",
               "--min-lr", "1e-5", "--sample", "0", "--out", out, *threads]
    timed = subprocess.run(["/usr/bin/time", "-f", "peak %M", *map(str, command)], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    seconds = [arguments.context / line["tokens_per_s"] for line in lines if "tokens_per_s" in line]
    memory = int(re.search(r"peak (\d+)", timed.stderr)[1]) / 1e6
    done = subprocess.run([BIN / "generate", "--run", out, "--tokens", str(DECODED), "--greedy", *threads], capture_output=True,
                          text=True, check=True)
    return statistics.median(seconds[1:]), memory, float(re.search(r"written: \d+ at ([\d.]+)/s", done.stderr)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--theirs", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.theirs:
        return theirs(arguments.theirs, arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "model"
        nanowhale().save_pretrained(folder)
        (folder / "text.bin").write_bytes(bytes(i * 7919 % 251 for i in range(200000)))
        rows = {"transformers": [], "braid": []}
        for turn in range(arguments.rounds):
            again = [sys.executable, __file__, "--theirs", folder, *sys.argv[1:]]
            rows["transformers"].append(json.loads(subprocess.run(again, capture_output=True, text=True, check=True).stdout.splitlines()[-1]))
            rows["braid"].append(ours(folder, arguments, pathlib.Path(name) / f"run{turn}"))
    medians = {who: [statistics.median(column) for column in zip(*runs)] for who, runs in rows.items()}
    for who, (step, memory, speed) in medians.items():
        print(f"{who:13} step {step * 1e3:6.0f} ms   peak {memory:.2f} GB   decoding {speed:6.1f} tokens/s")
    both = medians["transformers"], medians["braid"]
    print(f"braid is {both[0][0] / both[1][0]:.2f} times as fast in training, {both[1][2] / both[0][2]:.2f} in decoding")


if __name__ == "__main__":
    main()
