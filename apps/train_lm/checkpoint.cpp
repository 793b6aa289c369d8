#include "checkpoint.h"

#include <sstream>

#include <fmt/ranges.h>

#include <braid/core/files/checksum.h>
#include <braid/core/files/file_system.h>
#include <braid/core/files/safetensors.h>
#include <braid/core/instruction_set.h>
#include <braid/core/utf8.h>
#include <braid/nn/saving.h>
#include <braid/nn/subset.h>

#include "../common/exchange.h"
#include "../common/json_lines.h"
#include "../common/progress.h"
#include "../common/run_info.h"
#include "../common/run_main.h"
#include "saved_run.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;

/// `avx512 (AVX3_DL), ..` as older runs have it: `AVX3_DL, ..`.
std::string in_older_runs(std::string arithmetic) {
  const std::size_t open = arithmetic.find('('), close = arithmetic.find(')');
  return open < close ? arithmetic.erase(close, 1).substr(open + 1) : arithmetic;
}

/// How to compute with the run's instruction set, if it is another that this processor has.
std::string its_own_set(const std::string& earlier) {
  for (const InstructionSet set : instruction_sets())
    if (set != instruction_set() && earlier.starts_with(fmt::format("{} (", name(set))))
      return fmt::format("BRAID_ISA={} computes as it did, ", name(set));
  return "";
}

void check_instruction_set(const std::string& earlier, const Config& config) {
  const std::string now = apps::arithmetic(config.training.dtype, config.training.bits);
  check_value(config.allow_other_processor || earlier == now || earlier == in_older_runs(now),
              "--resume: the run was computed with {} but this process computes with {}, which rounds differently; {}"
              "--allow-other-processor continues nevertheless",
              excerpt(earlier), now, its_own_set(earlier));
}

void check_finite(const SafetensorsFile& file, const Config& config) {
  for (const auto& [name, tensor] : file.tensors)
    check_value(config.allow_nonfinite || apps::is_finite(tensor),
                "--resume: {} is not finite; --allow-nonfinite continues nevertheless", excerpt(name));
}

void load_moments(apps::TrainerState& state, const nn::NamedTensors& moments, const Config& config) {
  nn::Optimizer& optimizer = apps::as_optimizer(state.optimizer);
  if (std::optional<nn::Subset> part = apps::trained_part(state.model, config.training))
    optimizer.load_state(*part, moments);
  else
    optimizer.load_state(state.model, moments);
}

apps::TrainerState restored(const Checkpoint& saved, const apps::TrainerState& like, const Config& config) {
  apps::TrainerState state = like;
  nn::from_tensors(state.model, saved.tensors("model."), "--resume");
  load_moments(state, saved.tensors("optimizer."), config);
  state.rng = Rng(saved.number<std::uint64_t>("rng_key"), saved.number<std::uint64_t>("rng_draws"));
  state.step = saved.number<std::int64_t>("step");
  if (saved.file.metadata.contains("best_held_out")) state.best_held_out = saved.number<double>("best_held_out");
  return state;
}

/// Renames the files: next becomes last, last becomes previous.
void rotate(const fs::path& folder) {
  if (fs::exists(last_checkpoint(folder))) move_file(last_checkpoint(folder), previous_checkpoint(folder));
  move_file(next_checkpoint(folder), last_checkpoint(folder));
}

void save(const fs::path& path, const apps::TrainerState& state, const Config& config, const apps::Corpus& corpus) {
  nn::NamedTensors tensors;
  for (const auto& [name, t] : nn::to_tensors(state.model)) tensors["model." + name] = t;
  for (const auto& [name, t] : apps::as_optimizer(state.optimizer).state()) tensors["optimizer." + name] = t;
  for (const auto& [name, t] : tensors)
    check<apps::NonFiniteError>(config.allow_nonfinite || apps::is_finite(t),
                                "step {}: {} is not finite, so the last checkpoint is kept; try a smaller --lr",
                                state.step, name);
  std::map<std::string, std::string> metadata{
      {"step", std::to_string(state.step)},
      {"rng_key", std::to_string(state.rng.key())},
      {"rng_draws", std::to_string(state.rng.draws())},
      {"alphabet", corpus.alphabet()},
      {"text_checksum", corpus.checksum()},
      {"tokenizer_checksum", corpus.tokenizer_checksum()},
      {"instruction_set", apps::arithmetic(config.training.dtype, config.training.bits)},
      {"config", to_json(config).dump()}};
  if (state.best_held_out) metadata["best_held_out"] = fmt::format("{}", *state.best_held_out);
  metadata["checksum"] = checksum(tensors, metadata);
  apps::sync_json_lines(path.parent_path());  // a power cut must not lose lines of steps before the checkpoint
  save_safetensors(path, tensors, metadata);
}

}  // namespace

void save_checkpoint(const fs::path& folder, const apps::TrainerState& state, const Config& config,
                     const apps::Corpus& corpus) {
  save(next_checkpoint(folder), state, config, corpus);
  rotate(folder);
}

void save_if_best(const fs::path& folder, apps::TrainerState& state, double held_out, const Config& config,
                  const apps::Corpus& corpus) {
  if (state.best_held_out && held_out >= *state.best_held_out) return;
  state.best_held_out = held_out;
  save(best_checkpoint(folder), state, config, corpus);
}

std::optional<apps::TrainerState> load_checkpoint(const fs::path& folder, const apps::TrainerState& like,
                                                  const Config& config, const apps::Corpus& corpus) {
  const std::optional<Checkpoint> saved = newest_checkpoint(folder);
  if (!saved) return std::nullopt;
  check_same_run(saved->config(), saved->entry("text_checksum"), saved->entry("tokenizer_checksum"), config, corpus);
  check_instruction_set(saved->entry("instruction_set"), config);
  check_finite(saved->file, config);
  if (saved->path != last_checkpoint(folder))
    apps::say("{}continuing from {}\n", saved->damage.empty() ? "" : saved->damage + "; ", saved->path.string());
  apps::TrainerState state = restored(*saved, like, config);
  if (saved->path == next_checkpoint(folder)) rotate(folder);  // the rename that a killed process did not reach
  return state;
}

std::optional<apps::TrainerState> load_checkpoint_before(const fs::path& folder, std::int64_t step,
                                                         const apps::TrainerState& like, const Config& config,
                                                         const apps::Corpus& corpus) {
  const std::optional<Checkpoint> saved = checkpoint_before(folder, step);
  if (!saved) return std::nullopt;
  check_same_run(saved->config(), saved->entry("text_checksum"), saved->entry("tokenizer_checksum"), config, corpus);
  return restored(*saved, like, config);
}

void share_state(apps::TrainerState& state, const Config& config, dist::Communicator& ranks) {
  if (ranks.size() == 1) return;
  const nn::NamedTensors parameters = apps::broadcast(ranks, nn::to_tensors(state.model));
  const nn::NamedTensors moments = apps::broadcast(ranks, apps::as_optimizer(state.optimizer).state());
  std::istringstream numbers(ranks.broadcast(fmt::format("{} {} {}", state.step, state.rng.key(), state.rng.draws())));
  std::uint64_t key = 0, draws = 0;
  numbers >> state.step >> key >> draws;
  if (ranks.rank() == 0) return;
  nn::from_tensors(state.model, parameters);
  load_moments(state, moments, config);
  state.rng = Rng(key, draws);
}

void check_same_run(const nlohmann::json& earlier, const std::string& text_checksum,
                    const std::string& tokenizer_checksum, const Config& config, const apps::Corpus& corpus) {
  std::vector<std::string> changed = changed_settings(earlier, config);
  const std::string hint = changed.empty() ? "" : "; to train on with other settings, start a run from it with --init";
  if (tokenizer_checksum != corpus.tokenizer_checksum()) changed.emplace_back("another tokenizer");
  const auto file = [](const std::string& path) { return path.empty() ? "the license texts of the system" : path; };
  const nlohmann::json text = earlier.value("text", nlohmann::json());
  if (text_checksum != corpus.checksum())
    changed.push_back(fmt::format("another text: {} but now {}; --text names it",
                                  file(text.is_string() ? excerpt(text.get<std::string>()) : ""),
                                  file(config.text.empty() ? "" : fs::absolute(config.text).string())));
  check_value(changed.empty(), "--resume: the run was started with {}{}", fmt::join(changed, ", "), hint);
}

}  // namespace braid::train_lm
