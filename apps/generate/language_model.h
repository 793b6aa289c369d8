#pragma once
#include <filesystem>
#include <set>

#include "../common/trainer.h"
#include "../common/vocabulary.h"

namespace braid::generate {

/// A model and its vocabulary.
struct LanguageModel {
  apps::Model model;
  apps::Vocabulary vocabulary;
  std::set<std::int32_t> ends;  ///< the ids that end a text
};

/// Loads a folder as Hugging Face saves it: config.json, model.safetensors or its shards, and tokenizer.json.
/// Throws FileError naming what is missing, damaged or not supported.
LanguageModel load_model(const std::filesystem::path& folder);

/// Loads a checkpoint of train_lm, or the newest one of a run's folder. Throws FileError when there is none or it is
/// damaged.
LanguageModel load_run(const std::filesystem::path& path);

}  // namespace braid::generate
