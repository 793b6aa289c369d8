#!/usr/bin/python3 -B
"""Models of transformers through load_pretrained and save_pretrained: the same tensors and logits on both sides.
usage: pretrained_test.py PROGRAM, which is pretrained_copy; skipped without torch and transformers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)  # what ctest counts as skipped

transformers.logging.set_verbosity_error()


def gpt2(**settings):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        **{"vocab_size": 29, "n_positions": 20, "n_embd": 15, "n_layer": 3, "n_head": 5, "bos_token_id": 0, "eos_token_id": 0, **settings}))


LLAMA = {"vocab_size": 31, "max_position_embeddings": 33, "hidden_size": 24, "intermediate_size": 17, "num_hidden_layers": 3,
         "num_attention_heads": 6, "num_key_value_heads": 2}


def llama(**settings):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**LLAMA, **settings}))


def qwen3(**settings):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**{**LLAMA, "head_dim": 14, **settings}))


def mistral(**settings):
    return transformers.MistralForCausalLM(transformers.MistralConfig(**{**LLAMA, "head_dim": 6, "sliding_window": 5, **settings}))


def mixtral(**settings):
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(
        **{**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, **settings}))


def qwen3_moe(**settings):
    return transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(
        **{**LLAMA, "head_dim": 10, "num_experts": 5, "num_experts_per_tok": 3, "moe_intermediate_size": 7, **settings}))


def gemma2(**settings):
    return transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        **{**LLAMA, "head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 12, **settings}))


def deepseek_v4(**settings):
    sizes = {"vocab_size": 31, "max_position_embeddings": 33, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6,
             "head_dim": 12, "moe_intermediate_size": 10, "q_lora_rank": 8, "num_experts_per_tok": 2, "n_routed_experts": 5,
             "o_groups": 3, "o_lora_rank": 4, "index_n_heads": 8, "index_head_dim": 8, "index_topk": 2, "sliding_window": 5,
             "hc_mult": 3, "hc_sinkhorn_iters": 4, "partial_rotary_factor": 1 / 3, "swiglu_limit": 1.5, "num_nextn_predict_layers": 0,
             "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4}}
    model = transformers.DeepseekV4ForCausalLM(transformers.DeepseekV4Config(**{**sizes, **settings}))
    for name, buffer in model.named_buffers():
        if name.endswith("tid2eid"):
            buffer.copy_(torch.stack([torch.randperm(5)[:2] for _ in range(31)]))
    return model


def models():
    for activation in ("gelu_new", "gelu", "relu", "gelu_pytorch_tanh"):
        yield f"gpt2 {activation}", gpt2(activation_function=activation)
    yield "gpt2 untied", gpt2(tie_word_embeddings=False, n_inner=11)
    yield "llama", llama()
    yield "llama one layer", llama(num_hidden_layers=1, num_key_value_heads=6, tie_word_embeddings=True)
    yield "llama heads", llama(head_dim=10, num_key_value_heads=3, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    yield "qwen3", qwen3(num_attention_heads=8, num_key_value_heads=1, tie_word_embeddings=True)
    yield "qwen3 untied", qwen3()
    for rope in ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
                 {"rope_type": "yarn", "factor": 4.0}, {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.1, "truncate": False}):
        parameters = {**rope, "rope_theta": 10000.0, "original_max_position_embeddings": 16}
        yield f"llama {rope['rope_type']}", llama(head_dim=10, rope_parameters=parameters)
    yield "mistral", mistral()
    yield "mixtral", mixtral()
    yield "qwen3_moe", qwen3_moe()
    yield "qwen3_moe normalized", qwen3_moe(norm_topk_prob=True)
    yield "gemma2", gemma2()
    kinds = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
    yield "deepseek_v4", deepseek_v4(layer_types=kinds, mlp_layer_types=["hash_moe", "moe", "moe"])
    yield "deepseek_v4 as it is unless told", deepseek_v4(num_hidden_layers=4, scoring_func="sigmoid", rope_parameters={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0})
    yield "gemma2 without caps", gemma2(attn_logit_softcapping=None, final_logit_softcapping=None, layer_types=["full_attention"] * 3)


def perturbed(model):
    """With parameters of order one, norms and biases too."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((p + 0.2 * torch.randn(p.shape)).to(torch.bfloat16))  # so that every dtype holds the same
    return model.eval()


class Pretrained(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def copy(self, model, **saving):
        """Saves the model, lets braid copy it, and gives the tokens, the copy's folder and braid's logits."""
        there, back = self.folder / "there", self.folder / "back"
        model.save_pretrained(there, **saving)
        tokens = torch.randint(model.config.vocab_size, (2, 17))
        save_file({"tokens": tokens}, there / "tokens.safetensors")
        subprocess.run([PROGRAM, there, back], check=True)
        return tokens, back, load_file(back / "logits.safetensors")

    def check(self, model, **saving):
        tokens, back, ours = self.copy(model, **saving)
        # grouped products of experts take no odd sizes
        experts = {"experts_implementation": "eager"} if model.config.model_type in ("mixtral", "qwen3_moe", "deepseek_v4") else {}
        # Read anew: the model in memory has its rotary frequencies in its own dtype too.
        theirs, copied = (transformers.AutoModelForCausalLM.from_pretrained(self.folder / name, dtype=torch.float32, **experts).eval()
                          for name in ("there", "back"))
        self.assertEqual(type(copied), type(model))
        before, after = theirs.state_dict(), copied.state_dict()
        self.assertEqual(before.keys(), after.keys())
        for name, tensor in before.items():
            self.assertTrue(torch.equal(tensor, after[name]), name)
        with torch.no_grad():
            expected, again = theirs(tokens).logits, copied(tokens).logits
        scale = max(1, expected.abs().max().item())
        # GPT-2's GELU has two names, under which transformers computes it differently.
        bound = 2e-6 * scale if getattr(model.config, "activation_function", "") == "gelu_pytorch_tanh" else 0
        self.assertLessEqual((again - expected).abs().max().item(), bound)
        for dtype in ("f32", "f64"):
            self.assertLess((ours[dtype] - expected).abs().max().item() / scale, 2e-5, dtype)

    def test_all_families_in_f32(self):
        for name, model in models():
            with self.subTest(name):
                self.check(perturbed(model))

    def test_shards_of_every_dtype(self):
        for dtype in (torch.float16, torch.bfloat16):
            for name, model in models():
                with self.subTest(name, dtype=dtype):
                    self.check(perturbed(model).to(dtype), max_shard_size="3KB")

    def test_what_it_saves_has_a_configuration_that_says_all(self):
        _, back, _ = self.copy(perturbed(qwen3(rms_norm_eps=1e-3)))
        saved = json.loads((back / "config.json").read_text())
        self.assertEqual((saved["model_type"], saved["rms_norm_eps"], saved["head_dim"]), ("qwen3", 1e-3, 14))
        self.assertEqual(sorted(p.name for p in back.iterdir()), ["config.json", "logits.safetensors", "model.safetensors"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
