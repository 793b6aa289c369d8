#include <braid/nn/detail/trace.h>

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
  for (std::size_t i = 0; i < dys.size(); ++i) values_[op.first_output + i].cotangent = dys[i];
}

}  // namespace braid::nn::detail
