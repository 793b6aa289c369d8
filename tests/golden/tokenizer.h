#pragma once
#include <filesystem>

#include <tests/golden/check.h>

namespace braid::golden {

/// Whether a folder holds a tokenizer and what it does: tokenizer.json and cases.json, a list of
/// {"text": "..", "ids": [..]}.
bool is_tokenizer(const std::filesystem::path& folder);

/// Checks that nn::Tokenizer makes these ids of each text, and the text of the ids where no normalization changed it.
Verdict check_tokenizer(const std::filesystem::path& folder);

}  // namespace braid::golden
