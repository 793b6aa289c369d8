#include "checkpoint.h"

#include <braid/core/safetensors.h>
#include <braid/nn/saving.h>

namespace braid::train_lm {

void save_checkpoint(const std::filesystem::path& path, const examples::TrainerState& state, const Config& config,
                     const examples::Corpus& corpus) {
  nn::NamedTensors tensors;
  for (const auto& [name, t] : nn::to_tensors(state.model)) tensors["model." + name] = t;
  for (const auto& [name, t] : state.optimizer.state()) tensors["optimizer." + name] = t;
  save_safetensors(path, tensors,
                   {{"step", std::to_string(state.step)},
                    {"rng_key", std::to_string(state.rng.key())},
                    {"rng_draws", std::to_string(state.rng.draws())},
                    {"alphabet", corpus.alphabet()},
                    {"characters", std::to_string(corpus.size())},
                    {"config", to_json(config).dump()}});
}

examples::TrainerState load_checkpoint(const std::filesystem::path& path, const examples::TrainerState& like,
                                       const Config& config, const examples::Corpus& corpus) {
  const auto file = load_safetensors(path);
  const auto entry = [&](const std::string& key) {
    const auto found = file.metadata.find(key);
    check<FileError>(found != file.metadata.end(), "{}: the checkpoint has no '{}'", path.string(), key);
    return found->second;
  };
  check_same_run(nlohmann::json::parse(entry("config")), config);
  check_value(entry("alphabet") == corpus.alphabet() && entry("characters") == std::to_string(corpus.size()),
              "--resume: the run was started on another text");
  nn::NamedTensors parameters, moments;
  for (const auto& [name, t] : file.tensors) {
    if (name.starts_with("model.")) parameters[name.substr(6)] = t;
    if (name.starts_with("optimizer.")) moments[name.substr(10)] = t;
  }
  examples::TrainerState state = like;
  nn::from_tensors(state.model, parameters, path.string());
  state.optimizer.load_state(state.model, moments);
  state.rng = Rng(std::stoull(entry("rng_key")), std::stoull(entry("rng_draws")));
  state.step = std::stoll(entry("step"));
  return state;
}

}  // namespace braid::train_lm
