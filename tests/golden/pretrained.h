#pragma once
#include <filesystem>

#include <tests/golden/check.h>

namespace braid::golden {

/// Whether a folder holds a model as Hugging Face saves it and what it computes: config.json and expected.safetensors,
/// with `in.tokens`, `in.targets`, `out.logits`, `out.loss` and `grad.NAME` of every tensor.
bool is_pretrained(const std::filesystem::path& folder);

/// Checks nn::load_pretrained on it by the rules of check_case.
Verdict check_pretrained(const std::filesystem::path& folder);

}  // namespace braid::golden
