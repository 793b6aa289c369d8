#pragma once
#include <algorithm>
#include <iterator>
#include <string>

#include <braid/core/tensor.h>

namespace braid::detail {

/// An operand of einsum: each axis has a different letter as label.
struct LabeledTensor {
  std::string labels;
  Tensor tensor;
};

inline bool contains(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// The labels that satisfy a condition, in order.
std::string filter(const std::string& labels, auto condition) {
  std::string kept;
  std::ranges::copy_if(labels, std::back_inserter(kept), condition);
  return kept;
}

/// The sum of x over the axes whose labels `shared` does not contain.
LabeledTensor sum_unshared(const LabeledTensor& x, const std::string& shared);

/// A view with the axes in the order of `labels`; axes that x does not have get size 1.
Tensor align_to(const LabeledTensor& x, const std::string& labels);

/// The product of two tensors, summed over all axes but `out`, which are in that order.
Tensor contract(const LabeledTensor& a, const LabeledTensor& b, const std::string& out);

}  // namespace braid::detail
