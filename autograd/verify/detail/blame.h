#pragma once
#include <string>

#include <braid/autograd/verify/gradcheck.h>

namespace braid::detail {

struct BlameOptions {
  double tolerance;
  double amplification;  // of rounding errors, as gradcheck measured them
  std::uint64_t seed;
};

/// Says which op's vjp makes the gradient of <dy, f(inputs)> wrong.
///
/// f runs again with every recorded op cut off from the others: whatever an op computes, what goes on is what it
/// computed at first, moved along a direction of its own. So one run moves the inputs of all ops, each op shows its own
/// derivative, and a dozen runs compare every vjp of f with differences, whatever their number. The op nearest to the
/// output is then taken apart, input by input and element by element.
std::string blame(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy,
                  const BlameOptions& options);

}  // namespace braid::detail
