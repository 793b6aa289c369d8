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

/// A vjp that is split between two ops. An op that computes `H x + ..` may leave the cotangents of H and x to the op
/// that made them: then its cotangent of its input `input` is the unchanged one of its own output `output`.
struct Deferral {
  std::size_t input, output;  ///< indices of an input and of an output
};

/// An op as it was recorded, or a watched variable, which has no inputs.
struct RecordedOp {
  std::size_t index = 0;                       ///< on its tape, in the order of execution
  const char* name = "";                       ///< the name passed to record()
  std::vector<std::optional<ValueId>> inputs;  ///< nullopt: a constant
  ValueId first_output = 0;                    ///< the id of its first output; the others follow
  std::size_t outputs = 0;                     ///< number of outputs
  std::optional<Deferral> deferral;
};

/// Observes the ops of a tape as they are recorded and the cotangents of the backward pass, and may replace both by
/// others of the same shape. Finding wrong vjps and measuring precision build on it. It must outlive the tape's use.
class Probe {
 public:
  virtual ~Probe() = default;
  /// The op has computed `outputs` from `inputs`; later ops see the outputs as this function leaves them.
  virtual void recorded(const RecordedOp&, std::span<const Var> /*inputs*/, std::vector<Tensor>& /*outputs*/) {}
  /// Called before the op's vjp maps `dys`; undefined ones are zero.
  virtual void propagates(const RecordedOp&, std::span<Tensor> /*dys*/) {}
  /// Called when the vjp has returned `dxs`.
  virtual void propagated(const RecordedOp&, std::vector<Tensor>& /*dxs*/) {}
  /// Whether propagated() needs cotangents. If not, it gets none of the input of a view (`x[t]`), to which the tape
  /// then adds that of the view in place, as it does without a probe: a loop over T positions takes O(T), not O(T^2).
  virtual bool sees_cotangents() const { return true; }
  /// Whether checkpoint() should record the ops of its function instead of one op of its own.
  virtual bool opens_checkpoints() const { return false; }
};

}  // namespace braid
