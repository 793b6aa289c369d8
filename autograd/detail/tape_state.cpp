#include <braid/autograd/detail/tape_state.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>
#include <utility>

#include <fmt/ranges.h>

#include <braid/autograd/check_finite.h>
#include <braid/core/map.h>

namespace braid::detail {

static bool all_finite(const Tensor& t) {
  if (!t.defined() || t.dtype() == DType::i32) return true;
  const Tensor x = t.contiguous();
  return dispatch_float_or_bf16("all_finite", x.dtype(), [&]<class T>(T) {
    const T* data = x.data<T>();
    return std::all_of(data, data + x.numel(), [](Compute<T> v) { return std::isfinite(v); });
  });
}

void check_finite(const char* op, const char* made_by, std::span<const Tensor> results, std::span<const Input> inputs) {
  if (!CheckFinite::active() || std::ranges::all_of(results, all_finite)) return;
  throw NonFiniteError(fmt::format("{}: {} produced NaN or Inf from inputs of shapes {}", op, made_by,
                                   fmt::join(inputs | std::views::transform(&Input::shape), ", ")));
}

std::vector<Tensor> run_vjp(const Node& node, std::span<Tensor> dys, const Needs& needs) {
  const WithinVjp scope;
  return node.vjp(dys, needs);
}

void accumulate(Tensor& sum, Tensor term) {
  if (!sum.defined()) {
    sum = std::move(term);
  } else if (sum.unshared() && sum.is_contiguous()) {
    add_to_view(sum, std::identity(), term);
  } else {
    sum = map("accumulate", std::plus(), sum, term);
  }
}

void accumulate(Tensor& sum, const Input& x, const View& view, const Tensor& term) {
  if (!sum.defined()) {
    sum = zeros(x.shape, x.dtype);
    return write_view(sum, view, term);
  }
  if (!sum.unshared() || !sum.is_contiguous()) sum = sum.clone();
  add_to_view(sum, view, term);
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
  check_finite(node.op, made_by, dxs, node.inputs);
}

std::vector<std::weak_ptr<TapeState>>& tapes_of_higher_order() {
  thread_local std::vector<std::weak_ptr<TapeState>> tapes;
  return tapes;
}

void TapeState::start_higher_order(const std::shared_ptr<TapeState>& self) {
  self->higher_order = true;
  auto& tapes = tapes_of_higher_order();
  std::erase_if(tapes, [](const auto& tape) { return tape.expired(); });
  tapes.push_back(self);
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

void TapeState::push(const std::shared_ptr<TapeState>& self, Node&& node, Rule&& rule, std::span<const Var> inputs,
                     std::span<Var> outputs) {
  check<Error>(self->stage == Stage::recording,
               "{}: this tape has run backward; record on a new one, and write x.value() for an x of the old one",
               node.op);
  node.first_output = self->num_values();
  if (self->probe != nullptr) {
    std::vector<Tensor> results;
    for (Var& output : outputs) results.push_back(std::move(output.value_));
    self->probe->recorded(description(node, self->nodes.size(), outputs.size()), inputs, results);
    std::ranges::move(results, outputs.begin());
  }
  if (self->higher_order) {
    Retained retained{std::move(rule), {}, {outputs.begin(), outputs.end()}};
    for (const Var& input : inputs) retained.inputs.push_back(input.value());
    node.retained = std::make_shared<const Retained>(std::move(retained));
  }
  for (Var& output : outputs) {
    output.tape_ = self;
    output.id_ = self->num_values();
    self->values.emplace_back(output.id_, output.shape(), output.dtype());
  }
  self->nodes.push_back(std::move(node));
}

Var TapeState::leaf(const std::shared_ptr<TapeState>& self, Var value) {
  push(self, {"watch", {}, 0, 1, nullptr}, {}, {}, {&value, 1});
  return value;
}

std::vector<TapeState::FirstReader> TapeState::first_readers() const {
  std::vector<std::size_t> first(num_values(), 0);
  for (std::size_t k = nodes.size(); k-- > 0;)
    for (const Input& input : nodes[k].inputs)
      if (input.id) first[*input.id] = k;
  std::vector<FirstReader> readers;
  for (std::size_t i = 0; i < watched.size(); ++i) readers.push_back({first[watched[i]], i});
  std::ranges::sort(readers);
  return readers;
}

void TapeState::step_back() {
  const Node node = std::move(nodes.back());
  nodes.pop_back();
  const std::span dys = std::span(grads).subspan(node.first_output, node.outputs);
  if (!node.vjp || std::ranges::none_of(dys, &Tensor::defined)) return;
  needs.clear();
  for (const Input& input : node.inputs) needs.push_back(input.id.has_value());
  const RecordedOp op = probe != nullptr ? description(node, nodes.size(), dys.size()) : RecordedOp();
  if (probe != nullptr) probe->propagates(op, dys);
  if (node.view && (probe == nullptr || !probe->sees_cotangents())) {
    const Input& x = node.inputs.front();
    accumulate(grads[*x.id], x, node.view, std::exchange(dys.front(), Tensor()));
    std::vector<Tensor> none;
    if (probe != nullptr) probe->propagated(op, none);
    return;
  }
  std::vector<Tensor> dxs = run_vjp(node, dys, needs);
  std::ranges::fill(dys, Tensor());
  if (probe != nullptr) probe->propagated(op, dxs);
  check_cotangents(node, "vjp", dxs);
  for (std::size_t i = 0; i < dxs.size(); ++i)
    if (node.inputs[i].id && dxs[i].defined()) accumulate(grads[*node.inputs[i].id], std::move(dxs[i]));
}

}  // namespace braid::detail
