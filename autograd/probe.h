#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <braid/core/tensor.h>

namespace braid {

class Var;

/// A value on a tape: watched, or an output of an op.
using ValueId = std::uint32_t;

/// Some vjps are done in two parts. An op that writes `H x + ..` may leave the cotangents of H and x to the op that
/// made them: what it returns as the cotangent of its input `input` is that of its own output `output`.
struct Deferral {
  std::size_t input, output;  ///< positions among the op's inputs and among its outputs
};

/// An op as it was recorded, or a watched variable, which has no inputs.
struct RecordedOp {
  std::size_t index = 0;                       ///< on its tape, in the order of execution
  const char* name = "";                       ///< as record() was given it
  std::vector<std::optional<ValueId>> inputs;  ///< nullopt: a constant
  ValueId first_output = 0;                    ///< its outputs have this id and those that follow
  std::size_t outputs = 0;                     ///< how many it has
  std::optional<Deferral> deferral;
};

/// Sees the ops of a tape as they are recorded, and the cotangents on their way back, and may replace both: what finds
/// wrong vjps and measures precision is built on it. It must outlive the tape's use.
class Probe {
 public:
  virtual ~Probe() = default;
  /// The op has computed `outputs` from `inputs`; whatever uses them gets what is left in `outputs`.
  virtual void recorded(const RecordedOp&, std::span<const Var> /*inputs*/, std::vector<Tensor>& /*outputs*/) {}
  /// The op's vjp is about to map `dys`, of which undefined ones are zero.
  virtual void propagates(const RecordedOp&, std::span<Tensor> /*dys*/) {}
  /// It has returned `dxs`.
  virtual void propagated(const RecordedOp&, std::vector<Tensor>& /*dxs*/) {}
  /// Whether checkpoint() shall record the ops of its function instead of one op of its own.
  virtual bool opens_checkpoints() const { return false; }
};

namespace detail {
/// Whether a probe on the tape of these variables asks for that.
bool opens_checkpoints(std::span<const Var> inputs);
}  // namespace detail

}  // namespace braid
