#include <braid/nn/verify/detail/mismatch.h>

#include <algorithm>
#include <span>

namespace braid::nn::detail {

Trace::Trace(const braid::detail::Recording& recording) {
  for (const auto& op : recording.ops) {
    const bool watched = op.inputs.empty();
    if (!watched) ++ops;
    for (const auto& input : op.inputs)
      if (input) values[*input].users.push_back(fmt::format("'{}' (#{})", op.name, ops));
    if (op.deferral && op.inputs[op.deferral->input]) values[*op.inputs[op.deferral->input]].deferred = true;
    for (const Tensor& result : op.results) values.push_back({watched ? "" : op.name, ops, result});
  }
  for (const auto& op : recording.ops) {
    const std::span made = std::span(values).subspan(op.first_output, op.dys.size());
    const bool handed = std::ranges::any_of(made, &TracedValue::deferred);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].cotangent = op.dys[i];
      made[i].deferred |= handed && !op.dys[i].defined();
    }
  }
}

}  // namespace braid::nn::detail
