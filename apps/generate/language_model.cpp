#include "language_model.h"

#include <nlohmann/json.hpp>

#include <braid/core/error.h>
#include <braid/core/files/checksum.h>
#include <braid/nn/pretrained/pretrained.h>
#include <braid/nn/saving.h>

#include "../common/json_lines.h"
#include "../common/read_file.h"
#include "../train_lm/saved_run.h"

namespace braid::generate {
namespace {

namespace fs = std::filesystem;
using apps::Model;
using apps::Vocabulary;

/// The ids of "eos_token_id", one or a list, in a file that may be missing.
std::set<std::int32_t> ends_in(const fs::path& file) {
  std::set<std::int32_t> ends;
  if (!fs::exists(file)) return ends;
  const auto config = apps::parse_json(file.string(), apps::read_file(file));
  check<FileError>(config.is_object(), "{}: must be a JSON object", file.string());
  const auto ids = config.value("eos_token_id", nlohmann::json());
  for (const auto& id : ids.is_array() ? ids : nlohmann::json::array({ids}))
    if (const auto end = apps::integer_of(id); end && std::in_range<std::int32_t>(*end))
      ends.insert(static_cast<std::int32_t>(*end));
  return ends;
}

LanguageModel with_ends(Model model, Vocabulary vocabulary, std::set<std::int32_t> ends) {
  if (const auto eos = vocabulary.eos()) ends.insert(*eos);
  return {std::move(model), std::move(vocabulary), std::move(ends)};
}

Vocabulary vocabulary_of(const train_lm::SavedRun& run, std::int64_t size, const fs::path& folder) {
  if (!run.alphabet.empty()) return Vocabulary::of_characters(run.alphabet, folder.string());
  if (run.tokenizer_checksum.empty()) return Vocabulary::of_numbers(size);
  const fs::path file = folder / "tokenizer.json";
  Vocabulary vocabulary = Vocabulary::of_tokenizer(file);
  check<FileError>(checksum(vocabulary.tokenizer_json()) == run.tokenizer_checksum,
                   "{}: is not the tokenizer that the run was trained with", file.string());
  return vocabulary;
}

bool is_pretrained(const fs::path& folder) {
  return fs::exists(folder / "model.safetensors") || fs::exists(folder / "model.safetensors.index.json");
}

}  // namespace

LanguageModel load_model(const fs::path& folder) {
  check<FileError>(is_pretrained(folder) || !train_lm::has_checkpoint(folder),
                   "{}: is a run of train_lm, not a pretrained model: give it as --run", folder.string());
  std::set<std::int32_t> ends = ends_in(folder / "config.json");
  ends.merge(ends_in(folder / "generation_config.json"));
  Model model = nn::load_pretrained(folder, mhc::pretrained_connection);
  const fs::path tokenizer = folder / "tokenizer.json";
  Vocabulary vocabulary =
      fs::exists(tokenizer) ? Vocabulary::of_tokenizer(tokenizer) : Vocabulary::of_numbers(model.config.vocab);
  return with_ends(std::move(model), std::move(vocabulary), std::move(ends));
}

LanguageModel load_run(const fs::path& path) {
  check<FileError>(!is_pretrained(path) || train_lm::has_checkpoint(path),
                   "{}: is a pretrained model, not a run of train_lm: give it as --model", path.string());
  const train_lm::SavedRun run = train_lm::load_run(path);
  const fs::path folder = train_lm::folder_of(path);
  const std::int64_t vocab = run.parameters.at("embedding.weight").size(0);
  Vocabulary vocabulary = vocabulary_of(run, vocab, folder);
  check<FileError>(run.alphabet.empty() || vocabulary.size() == vocab,
                   "{}: the checkpoint has {} characters but embeddings of {}", path.string(), vocabulary.size(),
                   vocab);
  const nn::init::Placeholders until_read;
  Rng replaced;
  Model model = apps::make_model(run.training, vocab, replaced);
  nn::from_tensors(model, run.parameters, folder.string());
  return with_ends(std::move(model), std::move(vocabulary), {});
}

}  // namespace braid::generate
