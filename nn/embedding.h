#pragma once
#include <optional>

#include <braid/autograd/tape.h>
#include <braid/core/random.h>

namespace braid::nn {

/// Looks up a row of `weight` for each id: ids [...] i32 -> [..., channels]. Rows start from N(0, 1).
struct Embedding {
  Var weight;                                ///< [count, channels]
  std::optional<std::int64_t> padding = {};  ///< an id whose row gets no gradient, as PyTorch's padding_idx

  /// Throws ValueError unless count and channels are at least 1.
  Embedding(std::int64_t count, std::int64_t channels, Rng& rng, DType dtype = DType::f32);

  Var operator()(const Tensor& ids) const;  ///< ids [...] i32 -> [..., channels]

  void params(auto&& visit) { visit("weight", weight); }
};

}  // namespace braid::nn
