#include <braid/autograd/verify/detail/replay.h>

#include <algorithm>
#include <string_view>

#include <braid/autograd/verify/detail/differences.h>

namespace braid::detail {

void Replay::run(const GradcheckFunction& f, const std::vector<Tensor>& inputs, double t) {
  t_ = t;
  computed_.clear();
  leaks_.clear();
  Tape tape(this);
  std::vector<Var> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  f(watched);
  check<Error>(computed_.size() == base_.makers.size(), "f recorded {} values at first but now {}", base_.makers.size(),
               computed_.size());
}

void Replay::recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) {
  const bool known = op.index < base_.ops.size() && std::string_view(base_.ops[op.index].name) == op.name &&
                     base_.ops[op.index].results.size() == outputs.size();
  check<Error>(known, "f records other ops when its values change, first '{}' (#{})", op.name, op.index);
  const Recording::Op& before = base_.ops[op.index];
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].requires_grad() && inputs[i].value().defined() && before.constants[i].defined() &&
        !identical(inputs[i].value(), before.constants[i]))
      leaks_.push_back({op.index, i});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto value = static_cast<ValueId>(op.first_output + i);
    computed_.push_back(outputs[i]);
    if (flowing_.contains(value)) continue;
    const auto direction = directions_.find(value);
    outputs[i] = direction == directions_.end() ? before.results[i] : moved(before.results[i], direction->second, t_);
  }
}

}  // namespace braid::detail
