#include <braid/autograd/derivatives.h>

#include <algorithm>
#include <map>

#include <braid/autograd/detail/tape_state.h>
#include <braid/core/detail/indexing.h>
#include <braid/core/map.h>

namespace braid::detail {
namespace {

/// How a pass backward treats the ops that it visits.
enum class Pass {
  recorded,    // runs their rules; its results are variables
  repeatable,  // runs their vjps, which stay
  last,        // the same, and forgets them
};

/// The newest tape of higher order that this thread records; null if there is none.
std::shared_ptr<TapeState> current_tape() {
  auto& tapes = tapes_of_higher_order();
  while (!tapes.empty()) {
    if (auto tape = tapes.back().lock(); tape && tape->stage == Stage::recording) return tape;
    tapes.pop_back();
  }
  return nullptr;
}

/// Adds the dependents of a set of values from `first` on, and of all before `first` if `of_earlier`.
void add_dependents(const TapeState& tape, ValueId first, bool of_earlier, std::vector<bool>& depends) {
  const auto begin = std::ranges::lower_bound(tape.nodes, first, {}, &Node::first_output);
  for (const Node& node : std::ranges::subrange(begin, tape.nodes.end())) {
    const bool reached = std::ranges::any_of(node.inputs, [&](const Input& input) {
      return input.id && (*input.id < first ? of_earlier : depends[*input.id - first]);
    });
    for (std::size_t i = 0; reached && i < node.outputs; ++i) depends[node.first_output + i - first] = true;
  }
}

/// `a + b`, recorded. Constants are added in place.
Var sum_of(Var a, Var b) {
  if (!a.value().defined() || !b.value().defined()) return a.value().defined() ? a : b;
  if (!a.requires_grad() && !b.requires_grad()) {
    Tensor sum = std::move(a.mutable_value());
    accumulate(sum, std::move(b.mutable_value()));
    return sum;
  }
  return record("add", map("add", std::plus(), a.value(), b.value()), {a, b}, [](const Var& dy) {
    return std::vector<Var>{dy, dy};
  });
}

/// Cotangents of views of one value, which are added to its own in one op: T of them cost O(T).
struct Parts {
  Input x;
  std::vector<View> views;
  std::vector<Var> dys;

  Var sum() const {
    Tensor total;
    for (std::size_t i = 0; i < views.size(); ++i) accumulate(total, x, views[i], dys[i].value());
    return record("sum_of_views", std::move(total), dys, [views = views](const Var& dy) {
      std::vector<Var> parts;
      for (const View& view : views) parts.push_back(record_view("view", dy, view));
      return parts;
    });
  }
};

/// A pass backward over the ops of a tape from `ys` to `xs`.
class Backward {
 public:
  Backward(std::shared_ptr<TapeState> tape, std::span<const Var> xs, Pass pass)
      : tape_(std::move(tape)), xs_(xs), pass_(pass), first_(tape_->num_values()) {
    for (const Var& x : xs) first_ = std::min(first_, TapeState::id(x));
    depends_.resize(tape_->num_values() - first_);
    for (const Var& x : xs) depends_[TapeState::id(x) - first_] = true;
    add_dependents(*tape_, first_, false, depends_);
    grads_.resize(depends_.size());
  }

  /// The cotangents of xs for those of ys, which are 1 if there are no dys.
  std::vector<Var> run(const char* op, std::span<const Var> ys, std::span<const Var> dys) {
    check_shape(dys.empty() || dys.size() == ys.size(), "{}: the direction must have {} parts, as x has, but has {}",
                op, ys.size(), dys.size());
    for (std::size_t i = 0; i < ys.size(); ++i) {
      const Var dy = dys.empty() ? Var(ones(ys[i].shape(), ys[i].dtype())) : dys[i];
      if (!dy.value().defined()) continue;
      check_shape(dy.shape() == ys[i].shape(), "{}: the direction must have shape {} but has {}", op, ys[i].shape(),
                  dy.shape());
      check_dtype(dy.dtype() == ys[i].dtype(), "{}: the direction must have dtype {} but has {}", op,
                  name(ys[i].dtype()), name(dy.dtype()));
      check<Error>(!dy.requires_grad() || TapeState::of(dy) == tape_,
                   "{}: the direction {} is on another tape, where the gradient of the result would get lost; write "
                   "`const HigherOrder scope;` before that tape or what starts it, or v.value() for a constant",
                   op, dy.shape());
      const ValueId id = TapeState::id(ys[i]);
      const bool depends = TapeState::of(ys[i]) == tape_ && id >= first_ && depends_[id - first_];
      if (depends) accumulate_at(id, dy);
    }
    for (std::size_t k = tape_->nodes.size(); k-- > 0 && tape_->nodes[k].first_output >= first_;) visit(k);
    while (!parts_.empty()) add_parts(parts_.begin()->first);
    std::vector<Var> gradients;
    for (const Var& x : xs_) {
      const Var& grad = grads_[TapeState::id(x) - first_];
      gradients.push_back(grad.value().defined() ? grad : Var(zeros(x.shape(), x.dtype())));
    }
    return gradients;
  }

 private:
  void accumulate_at(ValueId id, Var dy) {
    Var& grad = grads_[id - first_];
    grad = sum_of(std::exchange(grad, Var()), std::move(dy));
  }

  void add_parts(ValueId id) {
    if (const auto found = parts_.extract(id)) accumulate_at(id, found.mapped().sum());
  }

  /// Of a view of x.
  void accumulate_view(const Input& x, const View& view, Var dy) {
    if (pass_ != Pass::recorded) return accumulate(grads_[*x.id - first_].mutable_value(), x, view, dy.value());
    Parts& parts = parts_.try_emplace(*x.id, Parts{x, {}, {}}).first->second;
    parts.views.push_back(view);
    parts.dys.push_back(std::move(dy));
  }

  void visit(std::size_t k) {
    const Node node = pass_ == Pass::last ? std::move(tape_->nodes[k]) : tape_->nodes[k];
    tape_->nodes[k].first_output = node.first_output;
    Needs needs;
    for (const Input& input : node.inputs)
      needs.push_back(input.id && *input.id >= first_ && depends_[*input.id - first_]);
    if (std::ranges::find(needs, true) == needs.end()) return;
    for (ValueId i = 0; i < node.outputs; ++i) add_parts(node.first_output + i);
    const std::span grads = std::span(grads_).subspan(node.first_output - first_, node.outputs);
    if (std::ranges::none_of(grads, [](const Var& dy) { return dy.value().defined(); })) return;
    std::vector<Var> dys(grads.begin(), grads.end());
    std::ranges::fill(grads, Var());
    if (node.view) return accumulate_view(node.inputs.front(), node.view, std::move(dys.front()));
    std::vector<Var> dxs = pass_ == Pass::recorded ? by_rule(node, dys, needs) : by_vjp(node, std::move(dys), needs);
    for (std::size_t i = 0; i < dxs.size(); ++i)
      if (needs[i] && dxs[i].value().defined()) accumulate_at(*node.inputs[i].id, std::move(dxs[i]));
  }

  std::vector<Var> by_rule(const Node& node, const std::vector<Var>& dys, const Needs& needs) const {
    check<Error>(node.retained->rule != nullptr,
                 "{}: this op has no rule for derivatives of higher order; pass one to record() after its vjp, or "
                 "detach its inputs",
                 node.op);
    std::vector<Var> inputs, outputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(TapeState::variable(tape_, node.retained->inputs[i], node.inputs[i].id));
    for (ValueId i = 0; i < node.outputs; ++i)
      outputs.push_back(TapeState::variable(tape_, node.retained->outputs[i], node.first_output + i));
    std::vector<Var> dxs = node.retained->rule({inputs, outputs, dys, needs});
    std::vector<Tensor> values;
    for (const Var& dx : dxs) values.push_back(dx.value());
    check_cotangents(node, "rule", values);
    return dxs;
  }

  static std::vector<Var> by_vjp(const Node& node, std::vector<Var> dys, const Needs& needs) {
    std::vector<Tensor> values;
    for (Var& dy : dys) values.push_back(std::exchange(dy, Var()).value());
    const std::vector<Tensor> dxs = run_vjp(node, values, needs);
    check_cotangents(node, "vjp", dxs);
    return {dxs.begin(), dxs.end()};
  }

  std::shared_ptr<TapeState> tape_;
  std::span<const Var> xs_;
  Pass pass_;
  ValueId first_;                   // the first of xs
  std::vector<bool> depends_;       // on xs, by id from first_ on
  std::vector<Var> grads_;          // the same
  std::map<ValueId, Parts> parts_;  // of values whose own cotangent is not complete
};

}  // namespace

bool share_tape(const Var& a, const Var& b) { return a.requires_grad() && TapeState::of(a) == TapeState::of(b); }

bool Differentiation::nested() { return current_tape() != nullptr; }

Differentiation::Differentiation(const char* op) : op_(op), tape_(current_tape()), nested_(tape_ != nullptr) {
  if (!nested_) {
    tape_ = std::make_shared<TapeState>();
    TapeState::start_higher_order(tape_);
  }
  first_ = tape_->num_values();
}

Differentiation::~Differentiation() {
  if (!nested_) tape_->stage = Stage::done;  // variables that f keeps must not keep it the current one
}

Var Differentiation::variable(const Var& x) {
  check_dtype(x.value().defined() && x.dtype() != DType::i32, "{}: x must be a floating-point tensor", op_);
  if (!x.requires_grad()) return TapeState::leaf(tape_, x);
  const auto& tape = TapeState::of(x);
  check<Error>(tape == tape_ || tape->higher_order,
               "{}: x {} is on a tape of first order, where the gradient of the result would get lost; write `const "
               "HigherOrder scope;` before that tape or what starts it, or x.value() for a constant",
               op_, x.shape());
  check<Error>(tape == tape_,
               "{}: x {} is on another tape than the newest one, and the gradient of the result would get lost; write "
               "grad() in place of the value_and_grad() inside, or x.value() for a constant",
               op_, x.shape());
  return record("variable", x.value(), {x}, [](const Var& dy) { return dy; });
}

std::vector<Var> Differentiation::gradients(List<Var> ys, List<Var> dys, List<Var> xs) {
  return Backward(tape_, xs, Pass::recorded).run(op_, ys, dys);
}

std::vector<Var> Differentiation::results(List<Var> ys, List<Var> dys, List<Var> xs, bool last) {
  for (const Var& dy : dys) check_shape(dy.value().defined(), "{}: the direction must be defined", op_);
  const Pass pass = nested_ ? Pass::recorded : last ? Pass::last : Pass::repeatable;
  return results(Backward(tape_, xs, pass).run(op_, ys, dys));
}

std::vector<Var> Differentiation::results(std::vector<Var> ys) const {
  for (const Var& y : ys)
    check<Error>(!y.requires_grad() || TapeState::of(y) == tape_,
                 "{}: f returned a variable that is on another tape, and its gradient would get lost", op_);
  std::vector<bool> from_outside(tape_->num_values() - first_);
  if (nested_) add_dependents(*tape_, first_, true, from_outside);
  for (Var& y : ys) {
    const bool stays = y.requires_grad() && (TapeState::id(y) < first_ || from_outside[TapeState::id(y) - first_]);
    if (!stays) y = detach(y);
  }
  return ys;
}

Rule rule_of_vjp(const char* op, std::function<Var(std::span<const Var>)> compose) {
  return [=](const Applied& at) {
    Differentiation tape(op);
    std::vector<Var> inputs(at.inputs.begin(), at.inputs.end()), needed;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (at.needs[i]) needed.push_back(inputs[i] = tape.variable(inputs[i]));
    std::vector<Var> xs;
    for (const Var& x : std::span(inputs).first(inputs.size() - 1)) xs.push_back(tape.variable(x));
    const Var y = compose(xs);
    const std::vector<Var> vjp = tape.gradients({y}, std::span(inputs).last(1), xs);
    const std::vector<Var> gradients = tape.gradients(vjp, at.dys, needed);
    std::vector<Var> dxs(inputs.size());
    for (std::size_t i = 0, next = 0; i < dxs.size(); ++i)
      if (at.needs[i]) dxs[i] = gradients[next++];
    return dxs;
  };
}

void check_scalar(const char* op, const Var& y) {
  check_shape(y.value().numel() == 1, "{}: f must return a scalar but returned shape {}", op, y.shape());
}

Tensor jacobian(Differentiation& tape, const Var& y, const Var& x) {
  const std::int64_t rows = y.value().numel(), columns = x.value().numel();
  const bool by_rows = rows <= columns;
  const Var u = tape.variable(zeros(y.shape(), y.dtype()));
  // Row i is the cotangent of x for that of element i of y; J^T u is linear in u, and its derivatives are the columns.
  const Var from = by_rows ? y : tape.gradients({y}, {u}, {x}).front();
  const Var& to = by_rows ? x : u;
  const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  Tensor j({count, length}, y.dtype());
  for (std::int64_t i = 0; i < count; ++i) {
    Tensor unit = zeros({from.value().numel()}, from.dtype());
    write_slice(unit, 0, i, ones({1}, from.dtype()));
    const Var dy = unit.reshape(from.shape());
    const Tensor line = tape.results({from}, {dy}, {to}, false).front();
    write_slice(j, 0, i, line.to(y.dtype()).reshape({1, length}));
  }
  return (by_rows ? j : j.transpose()).reshape(y.shape().concat(x.shape()));
}

}  // namespace braid::detail
