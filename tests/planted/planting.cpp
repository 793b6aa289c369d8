#include <tests/planted/planting.h>

#include <algorithm>
#include <utility>

namespace braid {
namespace {

thread_local planted::Planting* active = nullptr;

}  // namespace

namespace planted {

Planting::Planting(std::string op, std::size_t occurrence, WrongVjp wrong)
    : op_(std::move(op)), occurrence_(occurrence), wrong_(std::move(wrong)) {
  check<Error>(active == nullptr, "Planting: there is one already");
  active = this;
}

Planting::~Planting() { active = nullptr; }

void Planting::restart() { ops_ = occurrences_ = place_ = 0; }

Vjp Planting::plant(const char* op, std::span<const Var> inputs, const std::vector<Tensor>& outputs, Vjp vjp) {
  if (running_) return vjp;
  if (ops_++ == 0) ++evaluations_;
  if (op != op_ || occurrences_++ != occurrence_) return vjp;
  place_ = ops_;
  std::vector<Tensor> values;
  for (const Var& input : inputs) values.push_back(input.value());
  return [this, values, outputs, vjp = std::move(vjp)](std::span<Tensor> dys, const Needs& needs) {
    const auto right = [&](std::vector<Tensor> cotangents) { return vjp(cotangents, needs); };
    return run({values, outputs, {dys.begin(), dys.end()}, right});
  };
}

std::vector<Tensor> Planting::run(Call call) {
  running_ = true;
  const std::vector<Tensor> right = call.vjp(call.dys);
  std::vector<Tensor> wrong = wrong_(call);
  for (std::size_t i = 0; i < right.size(); ++i)
    if (!right[i].defined()) wrong[i] = Tensor();
  running_ = false;
  return wrong;
}

}  // namespace planted

/// That of autograd/tape.cpp, under the name that this program compiles it with.
std::vector<Var> plain_record(const char* op, std::vector<Tensor> outputs, std::span<const Var> inputs, Vjp vjp,
                              std::optional<Deferral> deferral, Rule rule);

std::vector<Var> record(const char* op, std::vector<Tensor> outputs, std::span<const Var> inputs, Vjp vjp,
                        std::optional<Deferral> deferral, Rule rule) {
  if (active != nullptr && std::ranges::any_of(inputs, &Var::requires_grad))
    vjp = active->plant(op, inputs, outputs, std::move(vjp));
  return plain_record(op, std::move(outputs), inputs, std::move(vjp), deferral, std::move(rule));
}

}  // namespace braid
