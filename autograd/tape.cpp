#include <braid/autograd/tape.h>

#include <algorithm>

#include <braid/autograd/check_finite.h>
#include <braid/autograd/composed.h>
#include <braid/autograd/detail/tape_state.h>

namespace braid {

using detail::Input, detail::Node, detail::Stage, detail::TapeState;

Tape::Tape(Probe* probe) : state_(std::make_shared<TapeState>()) {
  state_->probe = probe;
  if (Composed::state().higher_order) TapeState::start_higher_order(state_);
}

Var Tape::watch(const Tensor& value) {
  check<Error>(value.defined(), "Tape::watch: the tensor is undefined");
  check_dtype(value.dtype() != DType::i32, "Tape::watch: expected a floating-point tensor but has dtype i32");
  Var v = TapeState::leaf(state_, value);
  state_->watched.push_back(TapeState::id(v));
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
  backward(std::span(&y, 1), std::span(&dy, 1), sink);
}

void Tape::backward(std::span<const Var> ys, std::span<const Tensor> dys, const GradientSink& sink) {
  TapeState& state = *state_;
  check<Error>(state.stage == Stage::recording, "backward: this tape has run backward already");
  check_shape(ys.size() == dys.size(), "backward: {} outputs need {} cotangents but got {}", ys.size(), ys.size(),
              dys.size());
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (dys[i].defined()) check_same_dtype("backward", ys[i].value(), dys[i]);
    check_shape(!dys[i].defined() || dys[i].shape() == ys[i].shape(), "backward: dy must have shape {} but has {}",
                ys[i].shape(), dys[i].shape());
    check<Error>(!ys[i].requires_grad() || TapeState::of(ys[i]) == state_,
                 "backward: y is on another tape; is it made of a variable that a function captured?");
  }
  state.stage = Stage::running_backward;  // and so it stays when a vjp throws
  state.grads.assign(state.num_values(), Tensor());
  for (std::size_t i = 0; i < ys.size(); ++i)
    if (ys[i].requires_grad() && dys[i].defined()) detail::accumulate(state.grads[TapeState::id(ys[i])], dys[i]);
  auto readers = sink ? state.first_readers() : std::vector<TapeState::FirstReader>();
  while (!state.nodes.empty()) {
    state.step_back();
    for (; !readers.empty() && readers.back().node == state.nodes.size(); readers.pop_back()) {
      const auto& [id, shape, dtype] = state.values[state.watched[readers.back().watched]];
      Tensor grad = std::exchange(state.grads[*id], Tensor());
      sink(readers.back().watched, grad.defined() ? std::move(grad) : zeros(shape, dtype));
    }
  }
  state.stage = sink ? Stage::handed_over : Stage::done;
}

Tensor Tape::cotangent(const char* op, const Var& watched) const {
  check<Error>(TapeState::of(watched) == state_, "{}: the variable is not on this tape", op);
  check<Error>(std::ranges::binary_search(state_->watched, TapeState::id(watched)),
               "{}: this {} variable is the result of an op; only watched ones have a gradient", op, watched.shape());
  check<Error>(state_->stage != Stage::recording, "{}: run backward first", op);
  check<Error>(state_->stage != Stage::handed_over, "{}: it was handed over by backward", op);
  check<Error>(state_->stage == Stage::done, "{}: there is none, because backward threw an exception", op);
  return state_->grads[TapeState::id(watched)];
}

Tensor Tape::gradient(const Var& watched) const {
  const Tensor grad = cotangent("gradient", watched);
  return grad.defined() ? grad : zeros(watched.shape(), watched.dtype());
}

bool Tape::reaches(const Var& watched) const { return cotangent("reaches", watched).defined(); }

std::size_t Tape::size() const { return state_->nodes.size(); }

void detail::record(const char* op, std::span<Var> outputs, List<Var> inputs, Vjp vjp, std::optional<Deferral> deferral,
                    Rule rule) {
  const auto first = std::ranges::find_if(inputs, &Var::requires_grad);
  const std::shared_ptr<TapeState> tape = first != inputs.end() ? TapeState::of(*first) : nullptr;
  std::pmr::vector<Input> kept(tape ? &tape->memory : std::pmr::get_default_resource());
  Node node{op, std::move(kept), 0, outputs.size(), std::move(vjp), deferral};
  node.inputs.reserve(inputs.size());
  for (const Var& input : inputs) {
    const bool varies = input.requires_grad();
    check<Error>(!varies || tape == TapeState::of(input),
                 "{}: inputs are on different tapes, and each would lose the other's part of the gradient: pass a "
                 "captured x as an argument, or x.value(); for a gradient inside of what is differentiated, write "
                 "`const HigherOrder scope;` around both and grad()",
                 op);
    node.inputs.emplace_back(varies ? std::optional(TapeState::id(input)) : std::nullopt, input.shape(), input.dtype());
  }
  if (CheckFinite::active() && (tape || !WithinVjp::active()))
    check_finite(op, "forward", std::vector<Tensor>(outputs.begin(), outputs.end()), node.inputs);
  if (tape) TapeState::push(tape, std::move(node), std::move(rule), inputs, outputs);
}

std::vector<Var> record(const char* op, std::vector<Tensor> outputs, List<Var> inputs, Vjp vjp,
                        std::optional<Deferral> deferral, Rule rule) {
  std::vector<Var> results(std::make_move_iterator(outputs.begin()), std::make_move_iterator(outputs.end()));
  detail::record(op, results, inputs, std::move(vjp), deferral, std::move(rule));
  return results;
}

bool detail::only_computes(std::span<const Var> inputs) {
  return !CheckFinite::active() && std::ranges::none_of(inputs, &Var::requires_grad);
}

bool detail::of_higher_order(std::span<const Var> inputs) {
  const auto higher_order = [](const auto& tape) { return tape && tape->higher_order; };
  return std::ranges::any_of(inputs, higher_order, TapeState::of);
}

bool detail::opens_checkpoints(std::span<const Var> inputs) {
  const auto opens = [](const auto& tape) { return tape && tape->probe && tape->probe->opens_checkpoints(); };
  return std::ranges::any_of(inputs, opens, TapeState::of);
}

}  // namespace braid
