#pragma once
#include <span>
#include <string_view>
#include <variant>

#include <braid/nn/optim/adafactor.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/lion.h>
#include <braid/nn/optim/muon.h>

namespace braid::apps {

/// The optimizers of --optimizer, in the order of their names.
using AnyOptimizer = std::variant<nn::AdamW, nn::Muon, nn::Lion, nn::Adafactor>;

/// `adamw`, `muon`, `lion` and `adafactor`.
std::span<const std::string_view> optimizer_names();

/// An optimizer with this name, whose weight decay acts on weights only. Throws ValueError listing the names.
AnyOptimizer make_optimizer(std::string_view name, double lr, double weight_decay);

/// What all of them have.
inline nn::Optimizer& as_optimizer(AnyOptimizer& optimizer) {
  return std::visit([](auto& chosen) -> nn::Optimizer& { return chosen; }, optimizer);
}
inline const nn::Optimizer& as_optimizer(const AnyOptimizer& optimizer) {
  return as_optimizer(const_cast<AnyOptimizer&>(optimizer));
}

}  // namespace braid::apps
