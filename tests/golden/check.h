#pragma once
#include <string>
#include <vector>

#include <tests/golden/module.h>

namespace braid::golden {

/// The worst relative error over all tensors and paths in f64 and f32, and why the case failed: empty when it passed.
struct Verdict {
  double f64 = 0, f32 = 0;
  std::string why;
  double bf16 = 0;  ///< the worst share of what check_in_bf16 allows; 0 where no path runs in bf16
};

/// Evaluates every path of the module that the case's name refers to, in f64, in f32 and, where it can, in bf16, and
/// compares all out.*, grad.* and final.* of the case. f32 gets ten times the tolerance where logits go beyond +-20,
/// since their rounding alone changes exp(logit) by 1e-6.
Verdict check_case(const RecordedCase& golden, const std::vector<Module>& modules);

}  // namespace braid::golden
