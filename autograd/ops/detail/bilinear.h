#pragma once
#include <span>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::detail {

/// A map that is linear in its left inputs together and in its right ones, as a product is in either matrix. So its
/// derivatives of any order are made of itself and of its vjp.
struct Bilinear {
  const char *op, *vjp_op;
  std::size_t left;  // the number of left inputs, which come first
  /// The inputs as the other functions take them.
  std::vector<Tensor> (*lay_out)(std::span<const Var> inputs);
  Tensor (*forward)(std::span<const Tensor> inputs);
  /// The cotangents of the inputs, at least of those that are needed.
  std::vector<Tensor> (*vjp)(std::span<const Tensor> inputs, const Tensor& dy, const Needs& needs);
};

/// Records `y = map(inputs)`.
Var bilinear(const Bilinear& map, std::span<const Var> inputs);

}  // namespace braid::detail
