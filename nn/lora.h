#pragma once
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/nn/init.h>
#include <braid/nn/linear.h>

namespace braid::nn {

/// Settings of add_lora().
struct LoraSettings {
  std::int64_t rank = 8;                                   ///< at least 1
  std::optional<double> alpha = {};                        ///< the change is alpha / rank times b a; by default 2 b a
  std::function<bool(std::string_view path)> chosen = {};  ///< which Linears get one; by default all
};

/// Gives the chosen Linears of a module, but no GroupedLinear and none of an Indexer, a LowRank: `a` from
/// U(-1/sqrt(in), 1/sqrt(in)), `b` zeros, so that nothing changes yet. To train these alone, and to save them without
/// the rest:
///
///     nn::add_lora(model, rng, {.rank = 8});
///     nn::Subset lora = nn::subset(model, nn::in_lora);
///     auto step = value_and_grad([&](const nn::Subset& s) { return nn::with(model, s).loss(tokens, targets); });
///     ...
///     nn::save_module("lora.safetensors", lora);
///
/// Returns how many it gave. Throws ValueError for a rank below 1, a Linear that has one, and when none is chosen.
std::int64_t add_lora(auto& module, Rng& rng, const LoraSettings& settings = {}) {
  check_value(settings.rank >= 1, "add_lora: rank must be at least 1 but is {}", settings.rank);
  std::vector<Linear*> layers;
  const auto choose = [&](const std::string& path, Linear& layer) {
    if ((settings.chosen && !settings.chosen(path)) || path.find("indexer.") != path.npos) return;  // gets no gradient
    check_value(!layer.lora, "add_lora: {} has one already", path);
    layers.push_back(&layer);
  };
  braid::detail::visit_parts<Linear>(module, choose, "");
  check_value(!layers.empty(), "add_lora: no Linear of the module is chosen");
  for (Linear* layer : layers) {
    const std::int64_t in = layer->weight.size(1), out = layer->weight.size(0);
    const DType dtype = layer->weight.dtype();
    layer->lora = LowRank{.a = init::uniform({settings.rank, in}, 1 / std::sqrt(static_cast<double>(in)), rng, dtype),
                          .b = init::constant({out, settings.rank}, 0, dtype),
                          .scale = settings.alpha ? *settings.alpha / static_cast<double>(settings.rank) : 2};
  }
  return std::ssize(layers);
}

/// Adds each LowRank to its weight and removes it: the same function as before to rounding, at the cost of a Linear.
void merge_lora(auto& module) {
  const auto merge = [](const std::string&, Linear& layer) {
    if (!layer.lora) return;
    layer.weight = (layer.weight + layer.lora->scale * matmul(layer.lora->b, layer.lora->a)).value();
    layer.lora.reset();
  };
  braid::detail::visit_parts<Linear>(module, merge, "");
}

/// Whether a parameter is one of a LowRank, for subset().
inline bool in_lora(std::string_view path) { return path.ends_with("lora.a") || path.ends_with("lora.b"); }

}  // namespace braid::nn
