#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <braid/autograd/detail/recording.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::nn::detail {

/// A value on a tape: the result of an op, or a watched variable.
struct TracedValue {
  std::string op;      // its name; empty for a watched variable, whose gradient the tape returns
  std::size_t number;  // of the op, from 1 on
  Tensor value;
  Tensor cotangent{};                // undefined: zero
  bool deferred = false;             // its cotangent is computed by the vjp of the op that made it
  std::vector<std::string> users{};  // the ops that take it: 'linear' (#3)
};

/// The values of a tape in the order of execution, with the cotangents that reach them.
struct Trace {
  explicit Trace(const braid::detail::Recording& recording);

  std::vector<TracedValue> values;  // by ValueId
  std::size_t ops = 0;
};

/// A line about the first recorded part that no op has computed although its sources are all right, or, if the outputs
/// agree, about the first one, from the output back, whose gradient differs. Parts and values of the tape are paired by
/// their elements alone, row-major or with axes permuted, so that neither names nor shapes need to be those of the
/// recorded code.
std::string first_mismatch(const RecordedCase& recorded, const Trace& trace, double tolerance, bool outputs_agree);

}  // namespace braid::nn::detail
