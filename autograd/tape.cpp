#include <braid/autograd/tape.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include <fmt/ranges.h>

#include <braid/autograd/composed.h>
#include <braid/autograd/detail/tape_state.h>
#include <braid/core/map.h>
#include <braid/core/parallel.h>

namespace braid {
namespace {

thread_local int finite_checks = 0;
thread_local bool within_vjp = false;

bool all_finite(const Tensor& t) {
  if (!t.defined() || t.dtype() == DType::i32) return true;
  const Tensor x = t.contiguous();
  return dispatch_float_or_bf16("all_finite", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* data = x.data<T>();
    return std::all_of(data, data + x.numel(), [](Compute<T> v) { return std::isfinite(v); });
  });
}

}  // namespace

namespace detail {

void check_finite(const char* op, const char* direction, std::span<const Tensor> results,
                  std::span<const Input> inputs) {
  if (finite_checks == 0 || std::ranges::all_of(results, all_finite)) return;
  throw NonFiniteError(fmt::format("{}: {} produced NaN or Inf from inputs of shapes {}", op, direction,
                                   fmt::join(inputs | std::views::transform(&Input::shape), ", ")));
}

WithinVjp::WithinVjp() : before_(std::exchange(within_vjp, true)) {}
WithinVjp::~WithinVjp() { within_vjp = before_; }

void accumulate(Tensor& sum, Tensor term) {
  if (!sum.defined()) {
    sum = std::move(term);
  } else if (sum.unshared() && sum.is_contiguous() && term.is_contiguous()) {
    dispatch_float_or_bf16("accumulate", sum.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* total = sum.mutable_data<T>();
      const T* x = term.data<T>();
      parallel_for(sum.numel(), 16384, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) total[i] = static_cast<T>(total[i] + x[i]);
      });
    });
  } else {
    sum = map(
        "accumulate", [](auto a, auto b) { return a + b; }, sum, term);
  }
}

void check_cotangents(const Node& node, const char* made_by, std::span<const Tensor> dxs) {
  check<Error>(dxs.size() == node.inputs.size(), "{}: the {} returned {} cotangents for {} inputs", node.op, made_by,
               dxs.size(), node.inputs.size());
  for (std::size_t i = 0; i < dxs.size(); ++i) {
    const auto& [id, shape, dtype] = node.inputs[i];
    if (!id || !dxs[i].defined()) continue;
    check_shape(dxs[i].shape() == shape, "{}: the {} returned shape {} for input {} of shape {}", node.op, made_by,
                dxs[i].shape(), i, shape);
    check_dtype(dxs[i].dtype() == dtype, "{}: the {} returned dtype {} for input {} of dtype {}", node.op, made_by,
                name(dxs[i].dtype()), i, name(dtype));
  }
}

std::vector<std::weak_ptr<TapeState>>& tapes_of_higher_order() {
  thread_local std::vector<std::weak_ptr<TapeState>> tapes;
  return tapes;
}

/// The newest node, as probes see it.
static RecordedOp description(const Node& node, std::size_t index, std::size_t outputs) {
  RecordedOp op{index, node.op, {}, node.first_output, outputs, node.deferral};
  for (const Input& input : node.inputs) op.inputs.push_back(input.id);
  return op;
}

Var TapeState::variable(const std::shared_ptr<TapeState>& self, Tensor value, std::optional<ValueId> id) {
  Var v(std::move(value));
  if (!id) return v;
  v.tape_ = self;
  v.id_ = *id;
  return v;
}

std::vector<Var> TapeState::push(const std::shared_ptr<TapeState>& self, Node node, Rule rule,
                                 std::span<const Var> inputs, std::vector<Tensor> outputs) {
  check<Error>(self->stage == Stage::recording, "{}: this tape has run backward; record on a new one", node.op);
  node.first_output = self->num_values;
  if (self->probe != nullptr)
    self->probe->recorded(description(node, self->nodes.size(), outputs.size()), inputs, outputs);
  if (self->higher_order) {
    Retained retained{std::move(rule), {}, outputs};
    for (const Var& input : inputs) retained.inputs.push_back(input.value());
    node.retained = std::make_shared<const Retained>(std::move(retained));
  }
  std::vector<Var> vars;
  for (Tensor& output : outputs) {
    node.output_shapes.push_back(output.shape());
    vars.push_back(variable(self, std::move(output), self->num_values++));
  }
  self->nodes.push_back(std::move(node));
  return vars;
}

std::vector<TapeState::FirstReader> TapeState::first_readers() const {
  std::vector<std::size_t> first(num_values, 0);
  for (std::size_t k = nodes.size(); k-- > 0;)
    for (const Input& input : nodes[k].inputs)
      if (input.id) first[*input.id] = k;
  std::vector<FirstReader> readers;
  for (std::size_t i = 0; i < watched.size(); ++i) readers.push_back({first[watched[i].id], i});
  std::ranges::sort(readers);
  return readers;
}

void TapeState::hand_over(std::size_t position, const GradientSink& sink) {
  const auto& [id, shape, dtype] = watched[position];
  sink(position, grads[id].defined() ? std::exchange(grads[id], Tensor()) : zeros(shape, dtype));
}

void TapeState::step_back() {
  const Node node = std::move(nodes.back());
  nodes.pop_back();
  const std::span dys = std::span(grads).subspan(node.first_output, node.output_shapes.size());
  if (!node.vjp || std::ranges::none_of(dys, &Tensor::defined)) return;
  std::vector<bool> needed;
  for (const Input& input : node.inputs) needed.push_back(input.id.has_value());
  const auto notify_probe = [&](auto notify) {
    if (probe != nullptr) notify(description(node, nodes.size(), dys.size()));
  };
  notify_probe([&](const RecordedOp& op) { probe->propagates(op, dys); });
  std::vector<Tensor> dxs = [&] {
    const WithinVjp scope;
    return node.vjp(dys, Needs(std::move(needed)));
  }();
  std::ranges::fill(dys, Tensor());
  notify_probe([&](const RecordedOp& op) { probe->propagated(op, dxs); });
  check_cotangents(node, "vjp", dxs);
  check_finite(node.op, "vjp", dxs, node.inputs);
  for (std::size_t i = 0; i < dxs.size(); ++i)
    if (node.inputs[i].id && dxs[i].defined()) accumulate(grads[*node.inputs[i].id], std::move(dxs[i]));
}

}  // namespace detail

using detail::Node, detail::Stage, detail::TapeState, detail::Watched;

Var::operator Tensor() const {
  check<Error>(!requires_grad(),
               "Var: this {} variable is on a tape, but a Tensor has no gradient; write detach(x) or x.value()",
               shape());
  return value_;
}

Tensor& Var::mutable_value() {
  check<Error>(!requires_grad(), "Var::mutable_value: this variable is on a tape");
  return value_;
}

Tape::Tape(Probe* probe) : state_(std::make_shared<TapeState>()) {
  state_->probe = probe;
  state_->higher_order = Composed::state().higher_order;
  if (state_->higher_order) detail::tapes_of_higher_order().push_back(state_);
}

Var Tape::watch(const Tensor& value) {
  check_dtype(value.dtype() != DType::i32, "Tape::watch: expected a floating-point tensor but has dtype i32");
  Var v = std::move(TapeState::push(state_, {"watch", {}, 0, {}, nullptr}, {}, {}, {value}).front());
  state_->watched.push_back({TapeState::id(v), value.shape(), value.dtype()});
  return v;
}

void Tape::backward(const Var& y, Tensor dy) {
  if (!dy.defined()) {
    check_shape(y.value().numel() == 1, "backward: y has shape {}; give its cotangent, or a scalar", y.shape());
    dy = ones(y.shape(), y.dtype());
  }
  backward(std::span(&y, 1), std::span(&dy, 1));
}

void Tape::backward(const Var& y, const GradientSink& sink) {
  check_shape(y.value().numel() == 1, "backward: y has shape {} but must be a scalar", y.shape());
  const Tensor dy = ones(y.shape(), y.dtype());
  backward(std::span(&y, 1), std::span(&dy, 1), &sink);
}

void Tape::backward(std::span<const Var> ys, std::span<const Tensor> dys) { backward(ys, dys, nullptr); }

void Tape::backward(std::span<const Var> ys, std::span<const Tensor> dys, const GradientSink* sink) {
  TapeState& state = *state_;
  check<Error>(state.stage == Stage::recording, "backward: this tape has run backward already");
  check_shape(ys.size() == dys.size(), "backward: {} outputs need {} cotangents but got {}", ys.size(), ys.size(),
              dys.size());
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (dys[i].defined()) check_same_dtype("backward", ys[i].value(), dys[i]);
    check_shape(!dys[i].defined() || dys[i].shape() == ys[i].shape(), "backward: dy must have shape {} but has {}",
                ys[i].shape(), dys[i].shape());
    check<Error>(!ys[i].requires_grad() || TapeState::of(ys[i]) == state_, "backward: y is on another tape");
  }
  state.stage = Stage::running_backward;  // and so it stays when a vjp throws
  state.grads.assign(state.num_values, Tensor());
  for (std::size_t i = 0; i < ys.size(); ++i)
    if (ys[i].requires_grad() && dys[i].defined()) detail::accumulate(state.grads[TapeState::id(ys[i])], dys[i]);
  auto readers = sink != nullptr ? state.first_readers() : std::vector<TapeState::FirstReader>();
  while (!state.nodes.empty()) {
    state.step_back();
    for (; !readers.empty() && readers.back().node == state.nodes.size(); readers.pop_back())
      state.hand_over(readers.back().watched, *sink);
  }
  state.stage = sink != nullptr ? Stage::handed_over : Stage::done;
}

Tensor Tape::gradient(const Var& watched) const {
  check<Error>(TapeState::of(watched) == state_, "gradient: the variable is not on this tape");
  check<Error>(std::ranges::binary_search(state_->watched, TapeState::id(watched), {}, &Watched::id),
               "gradient: this {} variable is the result of an op; only watched ones have a gradient", watched.shape());
  check<Error>(state_->stage != Stage::recording, "gradient: run backward first");
  check<Error>(state_->stage != Stage::handed_over, "gradient: it was handed over by backward");
  check<Error>(state_->stage == Stage::done, "gradient: there is none, because backward threw an exception");
  const Tensor& grad = state_->grads[TapeState::id(watched)];
  return grad.defined() ? grad : zeros(watched.shape(), watched.dtype());
}

std::size_t Tape::size() const { return state_->nodes.size(); }

std::vector<Var> record(const char* op, std::vector<Tensor> outputs, std::span<const Var> inputs, Vjp vjp,
                        std::optional<Deferral> deferral, Rule rule) {
  std::shared_ptr<TapeState> tape;
  Node node{op, {}, 0, {}, std::move(vjp), deferral};
  for (const Var& input : inputs) {
    node.inputs.push_back({std::nullopt, input.shape(), input.dtype()});
    if (!input.requires_grad()) continue;
    check<Error>(!tape || tape == TapeState::of(input),
                 "{}: inputs are on different tapes, and each would lose the other's part of the gradient; for a "
                 "gradient inside of what is differentiated, write `const HigherOrder scope;` around both and grad()",
                 op);
    tape = TapeState::of(input);
    node.inputs.back().id = TapeState::id(input);
  }
  if (tape || !within_vjp) detail::check_finite(op, "forward", outputs, node.inputs);
  if (!tape) return {outputs.begin(), outputs.end()};
  return TapeState::push(tape, std::move(node), std::move(rule), inputs, std::move(outputs));
}

bool detail::of_higher_order(std::span<const Var> inputs) {
  return std::ranges::any_of(inputs, [](const Var& v) {
    const auto& tape = TapeState::of(v);
    return tape && tape->higher_order;
  });
}

bool detail::opens_checkpoints(std::span<const Var> inputs) {
  return std::ranges::any_of(inputs, [](const Var& v) {
    const auto& tape = TapeState::of(v);
    return tape && tape->probe != nullptr && tape->probe->opens_checkpoints();
  });
}

CheckFinite::CheckFinite() { ++finite_checks; }
CheckFinite::~CheckFinite() { --finite_checks; }

}  // namespace braid
