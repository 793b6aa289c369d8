#include <braid/nn/verify/detail/trace.h>

#include <algorithm>

#include <braid/autograd/tape.h>

namespace braid::nn::detail {

void Trace::recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>& outputs) {
  const bool watched = op.inputs.empty();
  if (!watched) ++ops_;
  for (const auto& input : op.inputs)
    if (input) values_[*input].users.push_back(fmt::format("'{}' (#{})", op.name, ops_));
  if (op.deferral && op.inputs[op.deferral->input]) values_[*op.inputs[op.deferral->input]].deferred = true;
  for (const Tensor& output : outputs) values_.push_back({watched ? "" : op.name, ops_, output});
}

void Trace::propagates(const RecordedOp& op, std::span<Tensor> dys) {
  const std::span made = std::span(values_).subspan(op.first_output, op.outputs);
  const bool handed = std::ranges::any_of(made, &TracedValue::deferred);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].cotangent = dys[i];
    made[i].deferred |= handed && !dys[i].defined();
  }
}

}  // namespace braid::nn::detail
