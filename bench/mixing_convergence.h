#pragma once
#include <string>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::bench {

/// Largest column error of matrices [draws, 4, 4] after each iteration, whose rows are exact: the median of the draws
/// and their 99th percentile.
struct Convergence {
  std::vector<double> median, p99;
};

/// The errors of sinkhorn with 1 .. iterations, on logits [draws, 16] (f64).
Convergence sinkhorn_convergence(const Tensor& logits, int iterations);
/// The errors of newton's steps, starting at the softmax of the rows.
Convergence newton_convergence(const Tensor& logits, int steps);

}  // namespace braid::bench
