#pragma once
#include <string>

#include <braid/nn/verify/detail/trace.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::nn::detail {

/// A line about the first recorded part that no op has computed although its sources are all right, or, if the outputs
/// agree, about the first one, from the output back, whose gradient differs. Parts and values of the tape are paired by
/// their elements alone, row-major or with axes permuted, so that neither names nor shapes need to be those of the
/// recorded code.
std::string first_mismatch(const RecordedCase& recorded, const Trace& trace, double tolerance, bool outputs_agree);

}  // namespace braid::nn::detail
