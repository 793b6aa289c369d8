#pragma once
#include <algorithm>
#include <ranges>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::detail {

/// Whether x is f32 or bf16, whose rounding differences in f64 cannot see through.
inline bool is_coarse(const Tensor& x) { return x.dtype() == DType::f32 || x.dtype() == DType::bf16; }

/// Records the ops of an evaluation and the cotangents of its backward pass.
class Recording : public Probe {
 public:
  struct Op : RecordedOp {
    std::vector<Tensor> constants;  // inputs that are not on the tape; undefined for the others
    std::vector<Tensor> results;    // outputs
    std::vector<Tensor> dys, dxs;   // empty when no cotangent came

    ValueId output(std::size_t i) const { return static_cast<ValueId>(first_output + i); }
  };

  explicit Recording(bool opens_checkpoints = false) : opens_(opens_checkpoints) {}

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override {
    Op& kept = ops.emplace_back(Op{op, {}, outputs, {}, {}});
    for (const Var& input : inputs) kept.constants.push_back(input.requires_grad() ? Tensor() : input.value());
    for (std::size_t i = 0; i < outputs.size(); ++i) makers.push_back(op.index);
  }
  void propagates(const RecordedOp& op, std::span<Tensor> dys) override {
    ops[op.index].dys.assign(dys.begin(), dys.end());
  }
  void propagated(const RecordedOp& op, std::vector<Tensor>& dxs) override { ops[op.index].dxs = dxs; }
  bool opens_checkpoints() const override { return opens_; }

  const Op& maker(ValueId value) const { return ops[makers[value]]; }
  const Tensor& value(ValueId id) const { return maker(id).results[id - maker(id).first_output]; }
  /// The number of an op as users count, from 1 and without f's inputs, which are recorded too.
  std::size_t number(std::size_t op) const {
    const auto is_input = [](const Op& o) { return o.inputs.empty(); };
    return op + 1 - static_cast<std::size_t>(std::ranges::count_if(ops | std::views::take(op + 1), is_input));
  }

  std::vector<Op> ops;
  std::vector<std::size_t> makers;  // the op of each value

 private:
  bool opens_;
};

}  // namespace braid::detail
