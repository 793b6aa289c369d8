#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <braid/autograd/probe.h>

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

/// Keeps all values of a tape and the cotangents that reach them.
class Trace : public Probe {
 public:
  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override;
  void propagates(const RecordedOp& op, std::span<Tensor> dys) override;
  bool opens_checkpoints() const override { return true; }

  /// In the order of execution.
  const std::vector<TracedValue>& values() const { return values_; }
  std::size_t ops() const { return ops_; }

 private:
  std::vector<TracedValue> values_;  // by ValueId
  std::size_t ops_ = 0;
};

}  // namespace braid::nn::detail
