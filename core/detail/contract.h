#pragma once
#include <algorithm>
#include <iterator>
#include <string>

#include <braid/core/tensor.h>

namespace braid::kernels {

/// A tensor whose axes have letters, each once.
struct Lettered {
  std::string letters;
  Tensor tensor;
};

inline bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

/// The letters of `letters` that satisfy a condition, in their order.
template <class Condition>
std::string select(const std::string& letters, Condition condition) {
  std::string selected;
  std::ranges::copy_if(letters, std::back_inserter(selected), condition);
  return selected;
}

/// Summed over the letters not in `kept`.
Lettered sum_lonely(const Lettered& x, const std::string& kept);

/// A view with the axes in the order of `letters`; those that x does not have get size 1.
Tensor arranged(const Lettered& x, const std::string& letters);

/// The product of two tensors whose axes `out` names, in that order; all other letters are summed over.
Tensor contract(const Lettered& a, const Lettered& b, const std::string& out);

}  // namespace braid::kernels
