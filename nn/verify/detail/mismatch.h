#pragma once
#include <string>

#include <braid/nn/verify/detail/trace.h>
#include <braid/nn/verify/recorded_case.h>

// Where a module first differs from its recorded parts. Parts and values of the tape are paired by their elements
// alone, row-major or with axes permuted, so that neither names nor shapes need to be those of the recorded code.

namespace braid::nn::detail {

/// A line about the first part that no op has computed although its sources are all right.
std::string first_wrong_part(const RecordedCase& recorded, const Trace& trace, double tolerance);
/// A line about the first part, from the output back, whose gradient differs.
std::string first_wrong_gradient(const RecordedCase& recorded, const Trace& trace, double tolerance);

}  // namespace braid::nn::detail
