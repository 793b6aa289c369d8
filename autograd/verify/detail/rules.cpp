#include <braid/autograd/verify/detail/comparison.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/detail/recording.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sum.h>

namespace braid::detail {
namespace {

/// Whether every element of y is one of an input: the op has moved or selected values, and rounded none.
bool is_selection(std::span<const Var> inputs, const Tensor& y) {
  std::set<double> values;
  for (const Var& input : inputs)
    if (input.dtype() == y.dtype())
      std::ranges::copy(input.value().to_vector<double>(), std::inserter(values, values.end()));
  return std::ranges::all_of(y.to_vector<double>(), [&](double v) { return values.contains(v); });
}

/// Changes the results of ops by up to `bits` units in their last places.
class Disturbance : public Probe {
 public:
  Disturbance(double bits, Rng rng) : bits_(bits), rng_(rng) {}

  bool of_selections = false;  // a maximum must stay one of its elements

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override {
    for (Tensor& y : outputs) {
      if (op.inputs.empty() || y.dtype() == DType::i32 || (!of_selections && is_selection(inputs, y))) continue;
      const double unit = y.dtype() == DType::f64 ? 0x1p-52 : y.dtype() == DType::f32 ? 0x1p-23 : 0x1p-8;
      const Var factors = 1 + bits_ * unit * (2 * rand(y.shape(), rng_, DType::f64) - 1);
      y = Tensor(y.to(DType::f64) * factors).to(y.dtype());
    }
  }

 private:
  double bits_;
  Rng rng_;
};

/// <J^T w, v> by rules.
double product_by_rules(const GradcheckFunction& f, List<Tensor> inputs, const Tensor& w, const std::vector<Var>& v,
                        Disturbance probe) {
  const HigherOrder scope;
  Tape tape(&probe);
  std::vector<Var> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  const Var y = f(watched), dy = tape.watch(w);  // a variable, so that the probe sees what is made of it
  probe.of_selections = true;
  Differentiation pass("gradcheck");
  return InnerProduct(pass.gradients({y}, {dy}, watched), v).value;
}

/// How far last bits move <J^T w, v>: much where large terms cancel, between ops or inside of one (1 - p of a sure
/// probability p), and where equal values decide. Also whether an op returns f32 or bf16.
std::pair<double, bool> rounding_error(const GradcheckFunction& f, List<Tensor> inputs, const Tensor& w,
                                       const std::vector<Var>& v, Rng& rng) {
  std::array<double, 5> products{};
  for (double& product : products)
    product = product_by_rules(f, inputs, w, v, {&product == products.begin() ? 0.0 : 4.0, rng.split()});
  const auto [least, most] = std::ranges::minmax(products);
  Recording recording(/*opens_checkpoints=*/true);
  gradients_at(f, inputs, w, &recording);
  double terms = 0;
  bool coarse = false;
  for (const Recording::Op& op : recording.ops)
    for (std::size_t i = 0; i < op.dys.size(); ++i) {
      const Tensor& y = op.results[i];
      coarse |= is_coarse(y);
      if (y.dtype() != DType::f64) continue;
      terms = std::max({terms, root_square_sum(op.dys[i], y), root_square_sum(op.dys[i], ones(y.shape(), DType::f64))});
    }
  return {std::max(most - least, 0x1p-52 * terms), coarse};
}

}  // namespace

GradcheckFunction gradient_function(const GradcheckFunction& f, const Tensor& dy) {
  return [f, dy](std::span<const Var> inputs) {
    const auto along = [&](const std::vector<Var>& x) { return sum(f(x) * dy); };
    std::vector<Var> flat;
    for (const Var& gradient : grad(along)(std::vector<Var>(inputs.begin(), inputs.end())))
      flat.push_back(reshape(gradient, {-1}));
    return concat(flat, 0);
  };
}

std::pair<CheckedDerivative, double> check_without_steps(const GradcheckFunction& f, List<Tensor> inputs,
                                                         std::uint64_t seed) {
  Rng rng = Rng(seed + 2).split();
  std::vector<Var> v;
  for (const Tensor& input : inputs) v.push_back(random_signs(input.shape(), rng));
  const auto [y, moves] = jvp(f, std::vector<Var>(inputs.begin(), inputs.end()), v);
  const Tensor w = random_signs(y.shape(), rng);
  const InnerProduct by_vjps(gradients_at(f, inputs, w), v), by_rules(std::vector{moves}, std::vector{w});
  CheckedDerivative checked{"all inputs", "without steps", by_vjps.value, by_rules.value};
  const double terms = std::max(by_vjps.size, by_rules.size),
               size = std::max({std::abs(by_vjps.value), std::abs(by_rules.value), 1e-3 * terms});
  checked.relative_error = relative_error(by_vjps.value, {.value = by_rules.value}, size);
  double tolerance = 1e-13 * std::max(1.0, terms / size);
  if (!(checked.relative_error <= tolerance)) {
    const auto [error, coarse] = rounding_error(f, inputs, w, v, rng);
    tolerance = std::max(tolerance, 64 * error / size);
    if (!(checked.relative_error < tolerance))
      checked.verdict =
          std::isfinite(by_vjps.value) || std::isfinite(by_rules.value) ? Verdict::wrong : Verdict::unchecked;
    else if (coarse && tolerance > 1e-3)
      checked.verdict = Verdict::unchecked;
  }
  return {checked, tolerance};
}

}  // namespace braid::detail
