#pragma once
#include <filesystem>
#include <set>

#include "../common/trainer.h"
#include "../common/vocabulary.h"

namespace braid::generate {

/// A model and what its ids stand for.
struct LanguageModel {
  examples::Model model;
  examples::Vocabulary vocabulary;
  std::set<std::int32_t> ends;  ///< the ids that end a text
};

/// Of a folder as Hugging Face saves it: config.json, model.safetensors or its shards, and tokenizer.json.
/// Throws FileError naming what is missing, damaged or not supported.
LanguageModel load_model(const std::filesystem::path& folder);

/// Of the newest checkpoint of a run of train_lm. Throws FileError.
LanguageModel load_run(const std::filesystem::path& folder);

}  // namespace braid::generate
