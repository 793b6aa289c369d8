#include <braid/autograd/verify/detail/blame.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include <fmt/format.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/detail/tape_state.h>
#include <braid/autograd/verify/detail/differences.h>

namespace braid::detail {
namespace {

/// A tensor with a direction in which it moves; both undefined where it does not.
struct Moving {
  Tensor value, direction;

  Tensor at(double t) const { return value.defined() ? moved(value, direction, t) : Tensor(); }
};

/// The ops of f on a tape of higher order. Each becomes a function of its inputs and of the cotangents of its outputs,
/// <weights, cotangents of the inputs>, which move along directions of their own.
class IsolatedOps : public Recording {
 public:
  IsolatedOps(const GradcheckFunction& f, List<Tensor> inputs, Rng rng)
      : Recording(/*opens_checkpoints=*/true), f_(f), inputs_(inputs) {
    base_ = nodes_at(0);
    nodes_of(first_order);
    const auto moving = [&](const Tensor& x) { return Moving{x, random_direction(x, rng)}; };
    for (const Node& node : base_)
      for (const Tensor& output : node.retained->outputs) {
        const bool moves = output.defined() && output.dtype() == DType::f64;
        values_.push_back(moves ? moving(output) : Moving());
        dys_.push_back(moves ? moving(random_signs(output.shape(), rng)) : Moving());
      }
    for (const Node& node : base_) {
      weights_.emplace_back();
      for (const Input& input : node.inputs)
        weights_.back().push_back(input.id && values_[*input.id].value.defined() ? random_signs(input.shape, rng)
                                                                                 : Tensor());
    }
  }

  Recording first_order;  // f's ops without a HigherOrder scope, as users draw them

  const std::vector<Node>& base() const { return base_; }
  const std::vector<Tensor>& weights(std::size_t op) const { return weights_[op]; }
  /// Constant inputs that changed with the values, by op.
  const Leaks& leaks() const { return leaks_; }

  /// The ops whose rule can be compared with its vjp.
  std::vector<std::size_t> with_rule() const {
    std::vector<std::size_t> list;
    for (std::size_t op = 0; op < base_.size(); ++op)
      if (base_[op].retained->rule && std::ranges::any_of(weights_[op], &Tensor::defined) &&
          std::ranges::all_of(dys_of(base_[op]), [](const Moving& dy) { return dy.value.defined(); }))
        list.push_back(op);
    return list;
  }

  /// Records f with the inputs of every op moved by t times their directions.
  std::vector<Node> nodes_at(double t) {
    t_ = t;
    const HigherOrder scope;
    return nodes_of(*this);
  }

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override {
    if (base_.empty()) return Recording::recorded(op, inputs, outputs);
    check<Error>(op.index < ops.size() && ops[op.index].results.size() == outputs.size(),
                 "f records other ops when its values change, first '{}' (#{})", op.name, number(op.index));
    const std::vector<Tensor>& constants = ops[op.index].constants;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].requires_grad() && constants[i].defined() && !identical(inputs[i].value(), constants[i]))
        leaks_[op.index] = i;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (const Moving& value = values_[op.first_output + i]; value.value.defined()) outputs[i] = value.at(t_);
  }

  /// An op's index there; none where fewer ops have its name, since composed forms and opened checkpoints add some.
  std::optional<std::size_t> on_first_order(std::size_t op) const {
    const auto same = [&](const Op& o) { return std::string_view(o.name) == ops[op].name; };
    auto others = first_order.ops | std::views::filter(same);
    if (std::ranges::distance(others) != std::ranges::count_if(ops, same)) return std::nullopt;
    return std::ranges::next(others.begin(), std::ranges::count_if(std::span(ops).first(op), same))->index;
  }

  /// By the vjp that nodes_at(t) recorded.
  InnerProduct by_vjp(const std::vector<Node>& nodes, std::size_t op, double t) const {
    const Node& node = nodes[op];
    Needs needs;
    for (const Tensor& weight : weights_[op]) needs.push_back(weight.defined());
    std::vector<Tensor> dys;
    for (const Moving& dy : dys_of(node)) dys.push_back(dy.at(t));
    return {node.vjp(dys, needs), weights_[op]};
  }

  struct ByRule : InnerProduct {  // at t = 0
    double derivative;            // with respect to t
  };

  /// By the rule; its derivative is taken by the vjps of the ops in it.
  ByRule by_rule(std::size_t op) const {
    const Node& node = base_[op];
    Differentiation tape("gradcheck");
    std::vector<Var> variables, directions, inputs, weights;
    const auto variable = [&](const Moving& x) {
      directions.push_back(x.direction);
      return variables.emplace_back(tape.variable(x.value));
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor& weight = weights_[op][i];
      if (weight.defined()) weights.push_back(weight);
      inputs.push_back(weight.defined() ? variable(values_[*node.inputs[i].id]) : Var(node.retained->inputs[i]));
    }
    for (const Moving& dy : dys_of(node)) variable(dy);
    const std::span<const Var> all(variables), xs = all.first(weights.size()), dys = all.subspan(weights.size());
    const auto outputs = record(node.op, node.retained->outputs, inputs, node.vjp, {}, node.retained->rule);
    const auto dxs = tape.gradients(outputs, dys, xs);
    return {InnerProduct(dxs, weights), InnerProduct(tape.results(dxs, weights, variables), directions).value};
  }

 private:
  std::vector<Node> nodes_of(Probe& probe) const {
    Tape tape(&probe);
    std::vector<Var> watched;
    for (const Tensor& input : inputs_) watched.push_back(tape.watch(input));
    f_(watched);
    return TapeState::of(watched.front())->nodes;
  }
  std::span<const Moving> dys_of(const Node& node) const {
    return std::span(dys_).subspan(node.first_output, node.outputs);
  }

  const GradcheckFunction& f_;
  std::span<const Tensor> inputs_;
  double t_ = 0;
  std::vector<Node> base_;
  std::vector<Moving> values_, dys_;          // by ValueId
  std::vector<std::vector<Tensor>> weights_;  // by op and input
  Leaks leaks_;
};

/// What is known of an op's function.
struct Suspect {
  std::size_t op;
  InnerProduct by_vjp;
  IsolatedOps::ByRule by_rule;
  Extrapolation numeric = {};  // the derivative of that by the vjp

  double floor() const { return 1e-3 * by_rule.size; }
  void add(double step, double above, double below) {
    const double up = above - by_vjp.value, down = by_vjp.value - below;
    const double noise = 0x1p-50 * std::max({std::abs(above), std::abs(below), by_rule.size});
    numeric.add(step, {up, down, noise, std::min(up, down), std::max(up, down), noise});
  }
};

/// The sentence about a suspect; empty if its rule is right, or neither value is finite.
std::string accuse(const IsolatedOps& ops, const Suspect& suspect, const std::string& place, double tolerance) {
  const IsolatedOps::ByRule& rule = suspect.by_rule;
  const std::string first = fmt::format("first rule that differs from its vjp: {}", place);
  if (!std::isfinite(rule.value) && !std::isfinite(suspect.by_vjp.value)) return "";
  const std::vector<Tensor>& weights = ops.weights(suspect.op);
  for (std::size_t i = 0, k = 0; i < weights.size(); k += weights[i++].defined())
    if (weights[i].defined() && !(std::abs(rule.terms[k] - suspect.by_vjp.terms[k]) <= 1e-10 * rule.size))
      return formatted("{}, input {} {}: along a random direction its rule gives {:.10g}, its vjp {:.10g}", first, i,
                       weights[i].shape(), rule.terms[k], suspect.by_vjp.terms[k]);
  const Derivative numeric = suspect.numeric.best();
  if (judge(rule.derivative, numeric, suspect.floor(), tolerance) != Verdict::wrong) return "";
  if (const auto leak = ops.leaks().find(suspect.op); leak != ops.leaks().end())
    return fmt::format(
        "no rule is wrong: a derivative is lost at {}, whose input {} {} is a constant but depends on variables", place,
        leak->second, ops.base()[suspect.op].inputs[leak->second].shape);
  return formatted(
      "{}: its rule has the derivative {:.10g}, its vjp {:.10g}; does it take a captured tensor for op.x()?", first,
      rule.derivative, numeric.value);
}

}  // namespace

Blame blame_rules(const GradcheckFunction& f, const Subject& subject) try {
  IsolatedOps ops(f, subject.inputs, Rng(subject.options.seed + 3).split());
  std::vector<Suspect> suspects;
  for (const std::size_t op : ops.with_rule()) suspects.push_back({op, ops.by_vjp(ops.base(), op, 0), ops.by_rule(op)});
  descend_together(1, suspects, subject.options.tolerance, [&](double step) {
    const std::vector<Node> above = ops.nodes_at(step), below = ops.nodes_at(-step);
    for (Suspect& suspect : suspects)
      suspect.add(step, ops.by_vjp(above, suspect.op, step).value, ops.by_vjp(below, suspect.op, -step).value);
  });
  for (const Suspect& suspect : suspects | std::views::reverse) {
    const auto index = ops.on_first_order(suspect.op);
    const std::string place = index ? place_of(ops.first_order, *index, subject)
                                    : place_of(ops, suspect.op, subject) + " in a HigherOrder scope";
    if (std::string sentence = accuse(ops, suspect, place, subject.options.tolerance); !sentence.empty())
      return {std::move(sentence), index};
  }
  return {"no rule is wrong: all that can be compared agree with their vjps along random directions"};
} catch (const Error& error) {
  return {fmt::format("no rule can be blamed: {}", error.what())};
}

}  // namespace braid::detail
