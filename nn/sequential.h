#pragma once
#include <string>
#include <tuple>
#include <utility>

#include <braid/autograd/params.h>

namespace braid::nn {

/// Layers one after the other, parameters named by position: `0.weight`, `2.weight`.
/// A layer is a module or any callable, so activations need no wrapper:
///
///     nn::Sequential model(nn::Linear(2, 16, rng), [](const Var& x) { return relu(x); }, nn::Linear(16, 1, rng));
template <class... Layers>
struct Sequential {
  std::tuple<Layers...> layers;

  explicit Sequential(Layers... in_order) : layers(std::move(in_order)...) {}  ///< of layers in this order

  /// x of any shape that the first layer takes -> that of the last one's result.
  Var operator()(Var x) const {
    std::apply([&](const auto&... layer) { ((x = layer(x)), ...); }, layers);
    return x;
  }

  void params(auto&& visit) {
    int position = 0;
    auto each = [&](auto& layer) {
      if constexpr (WithParams<std::remove_reference_t<decltype(layer)>>) visit(std::to_string(position), layer);
      ++position;
    };
    std::apply([&](auto&... layer) { (each(layer), ...); }, layers);
  }
};

}  // namespace braid::nn
