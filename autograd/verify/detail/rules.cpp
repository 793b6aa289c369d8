#include <braid/autograd/verify/detail/rules.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/detail/tape_state.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/verify/detail/differences.h>

namespace braid::detail {
namespace {

using Function = std::function<Var(const std::vector<Var>&)>;

/// The ops of f on a tape of higher order, with directions in which their inputs move, cotangents of their outputs, and
/// the weights of the cotangents of their inputs.
class Isolated : public Probe {
 public:
  Isolated(const GradcheckFunction& f, const std::vector<Tensor>& inputs, Rng rng) : f_(f), inputs_(inputs) {
    run(0);
    for (const Node& node : nodes_) {
      for (const Tensor& output : node.retained->outputs) {
        const bool moves = output.defined() && output.dtype() == DType::f64;
        directions_.push_back(moves ? random_direction(output, rng) : Tensor());
        cotangents_.push_back(moves ? random_signs(output.shape(), rng) : Tensor());
        base_.push_back(output);
      }
      weights_.emplace_back();
      for (const Tensor& input : node.retained->inputs)
        weights_.back().push_back(input.dtype() == DType::f64 ? random_signs(input.shape(), rng) : Tensor());
    }
  }

  /// Evaluates f with the inputs of each op at the recorded ones plus t times their directions.
  void run(double t) {
    t_ = t;
    const HigherOrder scope;
    Tape tape(this);
    std::vector<Var> watched;
    for (const Tensor& input : inputs_) watched.push_back(tape.watch(input));
    f_(watched);
    std::vector<Node> nodes = TapeState::of(watched.front())->nodes;
    check<Error>(base_.empty() || nodes.size() == nodes_.size(), "f records {} ops when its values change, not {}",
                 nodes.size(), nodes_.size());
    nodes_ = std::move(nodes);
  }

  void recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>& outputs) override {
    for (std::size_t i = 0; !base_.empty() && i < outputs.size(); ++i)
      if (const std::size_t id = op.first_output + i; directions_.at(id).defined())
        outputs[i] = moved(base_[id], directions_[id], t_);
  }
  bool opens_checkpoints() const override { return true; }

  const std::vector<Node>& nodes() const { return nodes_; }

  /// The sum over the inputs of an op of <its cotangent by the vjp, its weight>.
  double pulled_back(std::size_t op) const {
    const Node& node = nodes_[op];
    std::vector<Tensor> dys = cotangents_of(node);
    const Vjp vjp = node.vjp;
    return weighted(op, vjp(dys, needs_of(node)));
  }

  /// By the rule: the same, the derivative of it along the directions of the inputs, and their sizes.
  struct ByRule {
    double value = 0, derivative = 0, size = 0;
  };
  ByRule by_rule(std::size_t op) const {
    const Node& node = nodes_[op];
    Differentiation tape("gradcheck");
    std::vector<Var> inputs, xs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool moves = node.inputs[i].id && weights_[op][i].defined();
      inputs.push_back(moves ? tape.variable(node.retained->inputs[i]) : Var(node.retained->inputs[i]));
      if (moves) xs.push_back(inputs.back());
    }
    const std::vector<Var> outputs =
        record(node.op, node.retained->outputs, inputs, node.vjp, {}, node.retained->rule);
    const std::vector<Tensor> dys = cotangents_of(node);
    const std::vector<Var> gradients = tape.gradients(outputs, std::vector<Var>(dys.begin(), dys.end()), xs);
    std::vector<Var> along;
    ByRule found;
    for (std::size_t i = 0, x = 0; i < inputs.size(); ++i) {
      if (!inputs[i].requires_grad()) continue;
      found.value += dot(gradients[x].value(), weights_[op][i]);
      found.size += root_square_sum(gradients[x++].value(), weights_[op][i]);
      along.push_back(weights_[op][i]);
    }
    const std::vector<Var> second = tape.results(gradients, along, xs);
    for (std::size_t i = 0, x = 0; i < inputs.size(); ++i)
      if (inputs[i].requires_grad()) found.derivative += dot(second[x++].value(), directions_[*node.inputs[i].id]);
    return found;
  }

  /// Whether an op has inputs and outputs whose derivatives can be compared.
  bool is_checked(std::size_t op) const {
    const Node& node = nodes_[op];
    const bool reads = std::ranges::any_of(node.inputs, [&](const Input& input) {
      return input.id && weights_[op][static_cast<std::size_t>(&input - node.inputs.data())].defined();
    });
    const auto dys = cotangents_of(node);
    return node.vjp && reads && std::ranges::all_of(dys, &Tensor::defined);
  }

 private:
  std::vector<Tensor> cotangents_of(const Node& node) const {
    const auto begin = cotangents_.begin() + node.first_output;
    return {begin, begin + static_cast<std::ptrdiff_t>(node.output_shapes.size())};
  }

  Needs needs_of(const Node& node) const {
    std::vector<bool> needed;
    for (const Input& input : node.inputs) needed.push_back(input.id.has_value());
    return Needs(std::move(needed));
  }

  double weighted(std::size_t op, const std::vector<Tensor>& dxs) const {
    double sum = 0;
    for (std::size_t i = 0; i < dxs.size(); ++i)
      if (nodes_[op].inputs[i].id && dxs[i].defined() && weights_[op][i].defined()) sum += dot(dxs[i], weights_[op][i]);
    return sum;
  }

  const GradcheckFunction& f_;
  const std::vector<Tensor>& inputs_;
  double t_ = 0;
  std::vector<Node> nodes_;                                // of the last run
  std::vector<Tensor> base_, directions_, cotangents_;     // by ValueId
  std::vector<std::vector<Tensor>> weights_;               // by op and input
};

}  // namespace

GradcheckFunction gradient_function(const GradcheckFunction& f, const Tensor& dy) {
  return [f, dy](std::span<const Var> inputs) {
    const Function along = [&](const std::vector<Var>& x) { return sum(f(x) * dy); };
    std::vector<Var> flat;
    for (const Var& gradient : grad(along)(std::vector<Var>(inputs.begin(), inputs.end())))
      flat.push_back(reshape(gradient, {-1}));
    return concat(flat, 0);
  };
}

CheckedDerivative check_without_steps(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                                      std::uint64_t seed) {
  Rng rng = Rng(seed + 2).split();
  std::vector<Var> v;
  for (const Tensor& input : inputs) v.push_back(random_signs(input.shape(), rng));
  const auto [y, along] =
      jvp(Function([&](const std::vector<Var>& x) { return f(x); }), std::vector<Var>(inputs.begin(), inputs.end()), v);
  const Tensor w = random_signs(y.shape(), rng);
  const std::vector<Tensor> gradients = gradients_at(f, inputs, w);
  CheckedDerivative checked{"all inputs", "without steps"};
  double size = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    checked.analytic += dot(gradients[i], v[i].value());
    size = std::hypot(size, root_square_sum(gradients[i], v[i].value()));
  }
  checked.numeric = dot(along.value(), w);
  size = std::max({size, root_square_sum(along.value(), w), std::abs(checked.analytic), std::abs(checked.numeric)});
  const double difference = std::abs(checked.analytic - checked.numeric);
  checked.relative_error = difference == 0 ? 0 : difference / size;
  return checked;
}

std::string blame_rules(const GradcheckFunction& f, const std::vector<Tensor>& inputs, double tolerance,
                        std::uint64_t seed) {
  Isolated ops(f, inputs, Rng(seed + 3).split());
  const std::size_t count = ops.nodes().size();
  std::vector<std::optional<Isolated::ByRule>> analytic(count);
  std::vector<double> at_point(count);
  for (std::size_t op = 0; op < count; ++op)
    if (ops.is_checked(op)) {
      analytic[op] = ops.by_rule(op);
      at_point[op] = ops.pulled_back(op);
    }
  std::vector<Extrapolation> numeric(count);
  const auto pulled_back_at = [&](double t) {
    std::vector<double> values(count);
    ops.run(t);
    for (std::size_t op = 0; op < count; ++op)
      if (analytic[op]) values[op] = ops.pulled_back(op);
    return values;
  };
  double step = 0.0473;
  for (int rung = 0; rung < 14; ++rung, step *= 0.43) {
    const std::vector<double> above = pulled_back_at(step), below = pulled_back_at(-step);
    for (std::size_t op = 0; op < count; ++op) {
      const double up = above[op] - at_point[op], down = at_point[op] - below[op];
      const double noise = 0x1p-50 * std::max({std::abs(above[op]), std::abs(below[op]), analytic[op] ? analytic[op]->size : 0});
      numeric[op].add(step, {up, down, noise, std::min(up, down), std::max(up, down), noise});
    }
  }
  for (std::size_t op = count; op-- > 0;) {
    if (!analytic[op]) continue;
    const auto& [value, derivative, size] = *analytic[op];
    const std::string name = fmt::format("op '{}' (#{} of {})", ops.nodes()[op].op, op, count);
    if (!(std::abs(value - at_point[op]) <= 1e-9 * std::max(size, std::abs(at_point[op]))))
      return fmt::format("first wrong second derivative: {}: its rule gives {}, its vjp {}", name, value, at_point[op]);
    const Derivative found = numeric[op].best();
    if (judge(derivative, found, 1e-3 * size, tolerance) == Verdict::wrong)
      return fmt::format("first wrong second derivative: {}: its rule's derivative is {}, numeric {}", name, derivative,
                         found.value);
  }
  return "every rule agrees with its vjp on its own: does a fused op differ from its composed form?";
}

}  // namespace braid::detail
