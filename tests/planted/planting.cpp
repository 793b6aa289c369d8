#include <tests/planted/planting.h>

#include <algorithm>
#include <utility>

#include <braid/autograd/detail/tape_state.h>

namespace braid {
namespace {

thread_local planted::Planting* active = nullptr;

}  // namespace

namespace planted {
namespace {

Vjp wrong_vjp(const WrongVjp& wrong, std::vector<Tensor> inputs, std::vector<Tensor> outputs, Vjp vjp) {
  return [=](std::span<Tensor> dys, const Needs& needs) {
    const auto right = [&](std::vector<Tensor> cotangents) { return vjp(cotangents, needs); };
    const Call call{inputs, outputs, {dys.begin(), dys.end()}, right};
    const std::vector<Tensor> needed = right(call.dys);
    std::vector<Tensor> dxs = wrong(call);
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (!needed[i].defined()) dxs[i] = Tensor();
    return dxs;
  };
}

}  // namespace

Planting::Planting(const Error& error, std::size_t occurrence) : error_(error), occurrence_(occurrence) {
  check<braid::Error>(active == nullptr, "Planting: there is one already");
  active = this;
}

Planting::~Planting() { active = nullptr; }

void Planting::plant(const char* op, std::span<const Var> inputs, const std::vector<Tensor>& outputs, Vjp& vjp,
                     Rule& rule) {
  if (!counts_) return;
  if (ops_++ == 0) ++evaluations_;
  if (op != error_.op || occurrences_++ != occurrence_) return;
  place_ = ops_;
  std::vector<Tensor> values;
  for (const Var& input : inputs) values.push_back(input.value());
  if (error_.vjp) vjp = wrong_vjp(error_.vjp, values, outputs, std::move(vjp));
  if (error_.rule && rule)
    rule = [wrong = error_.rule, right = std::move(rule)](const Applied& at) { return wrong(at, right); };
}

}  // namespace planted

namespace detail {

/// That of autograd/tape.cpp, under the name that this program compiles it with.
void plain_record(const char* op, std::span<Var> outputs, List<Var> inputs, Vjp vjp, std::optional<Deferral> deferral,
                  Rule rule);

void record(const char* op, std::span<Var> outputs, List<Var> inputs, Vjp vjp, std::optional<Deferral> deferral,
            Rule rule) {
  if (active != nullptr && std::ranges::any_of(inputs, &Var::requires_grad))
    active->plant(op, inputs, {outputs.begin(), outputs.end()}, vjp, rule);
  plain_record(op, outputs, inputs, std::move(vjp), deferral, std::move(rule));
}

/// That of autograd/detail/record_view.cpp.
Var plain_record_view(const char* op, const Var& x, View view);

/// Cotangents of views are added without their vjps, unless there may be an error in these.
Var record_view(const char* op, const Var& x, View view) {
  Var y = plain_record_view(op, x, std::move(view));
  if (active != nullptr && y.requires_grad()) TapeState::of(y)->nodes.back().view = nullptr;
  return y;
}

}  // namespace detail

std::vector<Var> record(const char* op, std::vector<Tensor> outputs, List<Var> inputs, Vjp vjp,
                        std::optional<Deferral> deferral, Rule rule) {
  std::vector<Var> results(outputs.begin(), outputs.end());
  detail::record(op, results, inputs, std::move(vjp), deferral, std::move(rule));
  return results;
}

}  // namespace braid
