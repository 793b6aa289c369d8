#include "optimizer.h"

#include <array>

#include <fmt/ranges.h>

namespace braid::apps {
namespace {

constexpr std::array<std::string_view, 4> kNames{"adamw", "muon", "lion", "adafactor"};

}  // namespace

std::span<const std::string_view> optimizer_names() { return kNames; }

AnyOptimizer make_optimizer(std::string_view name, double lr, double weight_decay) {
  const nn::DecayRule decays = nn::decay_weights_only;  // not the maps and logits of connections
  const nn::AdamWSettings adamw{.lr = lr, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = weight_decay, .decays = decays};
  if (name == "adamw") return nn::AdamW(adamw);
  if (name == "muon") return nn::Muon({.adamw = adamw});
  if (name == "lion") return nn::Lion({.lr = lr, .weight_decay = weight_decay, .decays = decays});
  check_value(name == "adafactor", "optimizer must be one of {} but is '{}'", fmt::join(kNames, ", "), name);
  return nn::Adafactor({.lr = lr, .weight_decay = weight_decay, .decays = decays});
}

}  // namespace braid::apps
