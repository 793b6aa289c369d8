#include "checkpoint.h"

#include <cerrno>
#include <charconv>
#include <cstring>

#include <braid/core/checksum.h>
#include <braid/core/detail/file_system.h>
#include <braid/core/detail/regular_file.h>
#include <braid/core/detail/safetensors_header.h>
#include <braid/core/safetensors.h>
#include <braid/nn/saving.h>

#include "../common/json_lines.h"
#include "../common/progress.h"
#include "../common/run_info.h"
#include "../common/run_main.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;
using detail::excerpt;

// Written first, so that there is always one that is whole: the newest that is there is the newest that was saved.
fs::path next(const fs::path& folder) { return folder / "checkpoint.next.safetensors"; }
fs::path last(const fs::path& folder) { return folder / "checkpoint.safetensors"; }
fs::path previous(const fs::path& folder) { return folder / "checkpoint.previous.safetensors"; }

/// A checkpoint that verified.
struct Checkpoint {
  fs::path path;
  SafetensorsFile file;

  const std::string& entry(const std::string& key) const {
    const auto found = file.metadata.find(key);
    check<FileError>(found != file.metadata.end(), "{}: the checkpoint has no '{}'", path.string(), key);
    return found->second;
  }

  template <class T>
  T number(const std::string& key) const {
    const std::string& text = entry(key);
    T value{};
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check<FileError>(error == std::errc() && stop == text.data() + text.size(),
                     "{}: the checkpoint's '{}' must be a whole number but is '{}'", path.string(), key, excerpt(text));
    return value;
  }
};

/// Throws UnreadableFile when the file cannot be read, another FileError when it is damaged.
SafetensorsFile load_verified(const fs::path& path) {
  SafetensorsFile file = load_safetensors(path);
  const auto stored = file.metadata.extract("checksum");
  check<FileError>(!stored.empty(), "{}: the checkpoint has no checksum", path.string());
  const std::string actual = checksum(file.tensors, file.metadata);
  check<FileError>(stored.mapped() == actual, "{}: the checkpoint is damaged: its checksum must be {} but is {}",
                   path.string(), excerpt(stored.mapped()), actual);
  return file;
}

void check_instruction_set(const std::string& earlier, const Config& config) {
  const std::string now = examples::instruction_set();
  check_value(config.allow_other_processor || earlier == now,
              "--resume: the run was computed with {} but this processor has {}, which rounds differently; "
              "--allow-other-processor goes on all the same",
              excerpt(earlier), now);
}

void check_finite(const SafetensorsFile& file, const Config& config) {
  for (const auto& [name, tensor] : file.tensors)
    check_value(config.allow_nonfinite || examples::is_finite(tensor),
                "--resume: {} is not finite; --allow-nonfinite goes on all the same", excerpt(name));
}

examples::TrainerState restored(const Checkpoint& saved, const examples::TrainerState& like) {
  nn::NamedTensors parameters, moments;
  for (const auto& [name, t] : saved.file.tensors) {
    if (name.starts_with("model.")) parameters[name.substr(6)] = t;
    if (name.starts_with("optimizer.")) moments[name.substr(10)] = t;
  }
  examples::TrainerState state = like;
  nn::from_tensors(state.model, parameters, "--resume");
  state.optimizer.load_state(state.model, moments);
  state.rng = Rng(saved.number<std::uint64_t>("rng_key"), saved.number<std::uint64_t>("rng_draws"));
  state.step = saved.number<std::int64_t>("step");
  return state;
}

void move_file(const fs::path& from, const fs::path& to) {
  const bool done = detail::file_system().rename(from.c_str(), to.c_str()) == 0;
  const int error = errno;
  check<FileError>(done, "{}: cannot become {}: {}", from.string(), to.filename().string(), std::strerror(error));
}

/// The next one becomes the last one.
void rotate(const fs::path& folder) {
  if (fs::exists(last(folder))) move_file(last(folder), previous(folder));
  move_file(next(folder), last(folder));
}

}  // namespace

void save_checkpoint(const fs::path& folder, const examples::TrainerState& state, const Config& config,
                     const examples::Corpus& corpus) {
  nn::NamedTensors tensors;
  for (const auto& [name, t] : nn::to_tensors(state.model)) tensors["model." + name] = t;
  for (const auto& [name, t] : state.optimizer.state()) tensors["optimizer." + name] = t;
  for (const auto& [name, t] : tensors)
    check<examples::NonFiniteError>(config.allow_nonfinite || examples::is_finite(t),
                                    "step {}: {} is not finite, so the checkpoint before it stays; try a smaller --lr",
                                    state.step, name);
  std::map<std::string, std::string> metadata{{"step", std::to_string(state.step)},
                                              {"rng_key", std::to_string(state.rng.key())},
                                              {"rng_draws", std::to_string(state.rng.draws())},
                                              {"alphabet", corpus.alphabet()},
                                              {"text_checksum", corpus.checksum()},
                                              {"tokenizer_checksum", corpus.tokenizer_checksum()},
                                              {"instruction_set", examples::instruction_set()},
                                              {"config", to_json(config).dump()}};
  metadata["checksum"] = checksum(tensors, metadata);
  examples::sync_json_lines(folder);  // no power cut takes lines of steps that are not taken again
  save_safetensors(next(folder), tensors, metadata);
  rotate(folder);
}

bool has_checkpoint(const fs::path& folder) {
  return fs::exists(next(folder)) || fs::exists(last(folder)) || fs::exists(previous(folder));
}

std::optional<examples::TrainerState> load_checkpoint(const fs::path& folder, const examples::TrainerState& like,
                                                      const Config& config, const examples::Corpus& corpus) {
  std::string damage;
  for (const fs::path& path : {next(folder), last(folder), previous(folder)}) {
    if (!fs::exists(path)) continue;
    Checkpoint saved{path, {}};
    try {
      saved.file = load_verified(path);
    } catch (const detail::UnreadableFile&) {
      throw;  // it may be whole, and the next save would replace it
    } catch (const FileError& error) {
      if (damage.empty()) damage = error.what();
      continue;
    }
    const auto earlier = nlohmann::json::parse(saved.entry("config"), nullptr, /*allow_exceptions=*/false);
    check<FileError>(earlier.is_object(), "{}: the checkpoint's 'config' must be a JSON object", path.string());
    check_same_run(earlier, saved.entry("text_checksum"), saved.entry("tokenizer_checksum"), config, corpus);
    check_instruction_set(saved.entry("instruction_set"), config);
    check_finite(saved.file, config);
    if (path != last(folder)) examples::say("{}going on from {}\n", damage.empty() ? "" : damage + "; ", path.string());
    examples::TrainerState state = restored(saved, like);
    if (path == next(folder)) rotate(folder);  // which a process that was killed had still to do
    return state;
  }
  check<FileError>(damage.empty(), "{}", damage);
  return std::nullopt;
}

void check_same_run(const nlohmann::json& earlier, const std::string& text_checksum,
                    const std::string& tokenizer_checksum, const Config& config, const examples::Corpus& corpus) {
  check_same_settings(earlier, config);
  check_value(text_checksum == corpus.checksum(), "--resume: the run was started on another text");
  check_value(tokenizer_checksum == corpus.tokenizer_checksum(),
              "--resume: the run was started with another tokenizer");
}

}  // namespace braid::train_lm
