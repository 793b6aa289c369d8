#include <braid/autograd/verify/detail/comparison.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops/abs.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/core/map.h>

namespace braid::detail {
namespace {

/// Changes the last bits of every cotangent, as if vjps had rounded differently. Without it, large cotangents that
/// cancel exactly would hide the rounding error of their sum.
class RoundsDifferently : public Probe {
 public:
  explicit RoundsDifferently(Rng rng) : rng_(rng) {}
  void propagated(const RecordedOp&, std::vector<Tensor>& dxs) override {
    for (Tensor& dx : dxs)
      if (dx.defined() && dx.dtype() == DType::f64)
        dx = Tensor(dx * (1 + 0x1p-50 * rand(dx.shape(), rng_, DType::f64)));
  }

 private:
  Rng rng_;
};

/// Whether the derivative by finer steps is the better one: more accurate, or sure enough to contradict.
bool overrules(const Derivative& finer, const Derivative& coarser) {
  if (finer.settled != coarser.settled) return finer.settled;
  const double contradiction = std::abs(finer.value - coarser.value);
  return !(finer.error >= coarser.error) || contradiction > std::max(10 * finer.error, 3 * coarser.error);
}

/// f(inputs), and a sentence that says why the gradients of f cannot be checked: f changes its inputs, is not
/// deterministic, or returns NaN or Inf. It is empty when they can. Throws DTypeError unless the output of f is f64.
std::pair<Tensor, std::string> diagnose(const GradcheckFunction& f, List<Tensor> inputs,
                                        const std::vector<std::string>& names) {
  std::vector<Tensor> before;
  for (const Tensor& input : inputs) before.push_back(input.clone());
  const std::vector<Var> point(inputs.begin(), inputs.end());
  const Tensor y = f(point).value(), again = f(point).value();
  check_f64(y, "the output of f");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!identical(inputs[i], before[i])) return {y, fmt::format("f changes {}, which it may only read", names[i])};
  if (!identical(y, again))
    return {y, "f is not deterministic: two calls differ; when it draws random numbers, give each a copy of one Rng"};
  const std::vector<double> values = y.to_vector<double>();
  const auto odd = std::ranges::find_if_not(values, [](double v) { return std::isfinite(v); });
  if (odd == values.end()) return {y, ""};
  return {y, formatted("f returns {} in {} of its output {}", *odd, element_name(y.shape(), odd - values.begin()),
                       y.shape())};
}

}  // namespace

void check_f64(const Tensor& x, const std::string& what) {
  check_dtype(x.dtype() == DType::f64,
              "gradcheck: {} must be f64 but is {}; nn::to_dtype() converts a module, to() a tensor", what,
              name(x.dtype()));
}

Comparison::Comparison(Subject subject) : subject_(std::move(subject)), rng_(Rng(subject_.options.seed).split()) {
  auto& [f, inputs, names, options, differentiated, size, gradients] = subject_;
  for (std::size_t i = names.size(); i < inputs.size(); ++i) names.push_back(fmt::format("input {}", i));
  for (std::size_t i = 0; i < inputs.size(); ++i) check_f64(inputs[i], names[i]);
  std::tie(y_, obstacle_) = diagnose(f, inputs, names);
  if (!obstacle_.empty()) return;
  dy_ = random_signs(y_.shape(), rng_);
  gradients = compute_gradients(inputs, dy_);
  const std::vector<Tensor> again = compute_gradients(inputs, dy_);
  for (std::size_t i = 0; i < again.size() && obstacle_.empty(); ++i)
    if (!identical(gradients[i], again[i]))
      obstacle_ = fmt::format(
          "the gradient of {} is not deterministic: two backward passes differ; does a vjp read a dy that is a view "
          "without contiguous()?",
          names[i]);
  const Line line = line_of_all(subject_, rng_), fine = in_own_steps(subject_, line);
  noise_ = rounding_errors([&](double t) { return evaluate(line, t); }, [&](double t) { return evaluate(fine, t); });
}

std::vector<Tensor> Comparison::compute_gradients(List<Tensor> inputs, const Tensor& dy, Probe* probe) const {
  std::optional<HigherOrder> scope;
  if (subject_.differentiated != nullptr) scope.emplace();
  return gradients_at(subject_.f, inputs, dy, probe);
}

double Comparison::amplification() const {
  const double stored = kEpsilon * root_square_sum(dy_, y_);
  return stored > 0 ? std::max(1.0, rounding() / stored) : 1;
}

std::vector<Tensor> Comparison::point_on(const Line& line, double t) const {
  std::vector<Tensor> point = subject_.inputs;
  for (const auto& [input, direction] : line.directions) point[input] = moved(point[input], direction, t);
  return point;
}

Tensor Comparison::evaluate(const Line& line, double t) const {
  const std::vector<Tensor> point = point_on(line, t);
  return subject_.f(std::vector<Var>(point.begin(), point.end())).value();
}

Moves Comparison::moves_along(const Line& line, double step) const {
  Movement movement;
  movement.add(dy_, evaluate(line, step), y_, evaluate(line, -step), noise_);
  return movement.moves(step, std::max(line.size, step));
}

Derivative Comparison::derivative_along(const Line& line, double scale, double floor) const {
  Extrapolation extrapolation;
  const auto add = [&](double step) -> const Extrapolation& {
    step = (line.from + step) - line.from;  // the step as rounded
    extrapolation.add(step, moves_along(line, step));
    return extrapolation;
  };
  const auto certain = [&](const Derivative& d) {
    return d.error <= 0.1 * subject_.options.tolerance * std::max(std::abs(d.value), floor);
  };
  return descend(scale, add, certain);
}

Comparison::Analytic Comparison::analytic_along(const Line& line) const {
  InnerProduct product;
  double rounding = 0;
  for (const auto& [input, direction] : line.directions) {
    product.add(subject_.gradients[input], direction);
    if (!rounding_.empty()) rounding += 4 * dot(rounding_[input], Tensor(abs(direction)));
  }
  return {product.value, 1e-3 * std::max(line.largest, std::isfinite(product.size) ? product.size : 0), rounding};
}

/// The gradients at a point on a line, as if vjps rounded differently there.
std::vector<Tensor> Comparison::gradients_on(const Line& line, double t, const Tensor& turn) {
  RoundsDifferently probe(rng_.split());
  return compute_gradients(point_on(line, t), moved(dy_, turn, t), &probe);
}

/// How far gradients move with the last bits of the inputs; not by how cotangents lie in memory, which probes change.
std::vector<Tensor> Comparison::rounding_of_gradients() {
  std::vector<Tensor> largest(subject_.gradients.size(), scalar(0, DType::f64));
  const Line line = in_own_steps(subject_, line_of_all(subject_, rng_));
  const Tensor turn = random_direction(dy_, rng_);
  const std::vector<Tensor> here = gradients_on(line, 0, turn);
  for (int k = 0; k < 32; ++k) {
    const auto there = gradients_on(line, (k % 2 == 0 ? 0x1p-51 : -0x1p-51) * (1 + k / 2), turn);
    const auto larger = [](auto change, auto g, auto probed, auto h) {
      return std::max(change, std::min(std::abs(g - h), std::abs(probed - h)));
    };
    for (std::size_t i = 0; i < largest.size(); ++i)
      largest[i] = map("gradcheck", larger, largest[i], subject_.gradients[i], here[i], there[i]);
  }
  return largest;
}

/// How far gradients jump on a line: those at two points near by agree, but not with those here.
void Comparison::add_jumps(const Line& line) {
  const Tensor turn = random_direction(dy_, rng_);
  const std::vector<Tensor> here = gradients_on(line, 0, turn);
  for (const double t : {0x1p-45, -0x1p-45}) {
    const auto near = gradients_on(line, t, turn), far = gradients_on(line, 2 * t, turn);
    for (std::size_t i = 0; i < jumps_.size(); ++i) {
      const double rounding = 1e-9 * root_square_sum(near[i], ones(near[i].shape(), DType::f64));
      const auto larger = [=](auto most, auto g, auto probed, auto near, auto far) {
        const auto jump = std::min(std::abs(near - g), std::abs(near - probed));
        return std::abs(far - near) <= 1e-3 * std::min(jump, std::abs(near)) + rounding ? std::max(most, jump) : most;
      };
      jumps_[i] = map("gradcheck", larger, jumps_[i], subject_.gradients[i], here[i], near[i], far[i]);
    }
  }
}

/// Whether a derivative cannot be distinguished from 0, as far as it can tell.
bool Comparison::is_negligible(const Line& line, const CheckedDerivative& checked) const {
  const double unit = std::max(line.scale, 1.0), largest = std::abs(checked.analytic) * unit;
  // Where f does not move at all, one below the rounding of the inputs.
  if (checked.numeric == 0 && checked.uncertainty == 0) return largest <= kEpsilon * line.scale;
  if (checked.verdict == Verdict::wrong) return false;
  const double moves = largest + (std::abs(checked.numeric) + checked.uncertainty) * unit;
  if (checked.analytic == 0 && moves <= 1e5 * rounding()) return true;  // f moves no further than it rounds
  const double beyond = root_square_sum(dy_, evaluate(line, 0x1p-4 * line.scale));
  const double size = std::max({root_square_sum(dy_, y_), std::isfinite(beyond) ? beyond : 0, subject_.size / unit});
  return moves <= 1e-8 * size;  // less than half of the digits of the output
}

CheckedDerivative Comparison::check(Line line) {
  Compared compared = compare(line);
  CheckedDerivative& checked = compared.checked;
  if (checked.verdict == Verdict::unchecked && !line.is_element()) {
    line = in_own_steps(subject_, line);
    compared = compare(line);
  }
  if (checked.verdict == Verdict::wrong) judge_again(line, compared);
  const auto is_wrong = [&](Comparison& there) { return there.check(line).verdict == Verdict::wrong; };
  if (checked.verdict == Verdict::kink && has_neighbors_ && std::ranges::any_of(beside(), is_wrong))
    checked.verdict = Verdict::wrong;  // at a small distance on either side of a kink, the gradient has to be right
  const bool right = checked.verdict == Verdict::right || checked.verdict == Verdict::kink;
  if (!right && is_negligible(line, checked)) checked.verdict = Verdict::right, checked.relative_error = 0;
  return checked;
}

/// The verdict of differences alone. Coarse steps may all miss a narrow or near feature of f, or see a kink that is
/// only near. So unless a gradient is right, finer steps overrule coarser ones that they contradict.
Comparison::Compared Comparison::compare(const Line& line) const {
  const auto [analytic, floor, rounding] = analytic_along(line);
  Compared found{{.input = line.input, .where = line.where, .analytic = analytic, .verdict = Verdict::unchecked}, {}};
  for (const double unit : {line.scale, 1e-3 * line.scale, 1e-6 * line.scale, line.size}) {
    const Derivative numeric = derivative_along(line, unit, floor);
    if (!overrules(numeric, found.numeric)) continue;
    found.numeric = numeric;
    found.checked.verdict = judge(analytic, numeric, floor, subject_.options.tolerance);
    if (found.checked.verdict == Verdict::right) break;
  }
  found.checked.numeric = found.numeric.value;
  found.checked.uncertainty = found.numeric.error;
  found.checked.relative_error = relative_error(analytic, found.numeric, floor);
  return found;
}

/// What may look wrong although it is right: a gradient that consists of rounding, and kinks.
void Comparison::judge_again(const Line& line, Compared& compared) {
  CheckedDerivative& checked = compared.checked;
  if (jumps(line, compared)) {
    checked.verdict = has_neighbors_ && beside().empty() ? Verdict::unchecked : Verdict::kink;
    return;
  }
  if (rounding_.empty()) rounding_ = rounding_of_gradients();
  const auto [analytic, floor, rounding] = analytic_along(line);
  Derivative numeric = compared.numeric;
  if (std::isfinite(rounding)) numeric.error += rounding;
  checked.verdict = judge(checked.analytic, numeric, floor, subject_.options.tolerance);
  if (checked.verdict != Verdict::wrong) return;
  if (may_hide_a_kink(line, checked.analytic - checked.numeric)) checked.verdict = Verdict::undecidable;
}

/// Two branches of f whose slopes differ here by `difference` meet again where curvature makes up for it. When that
/// is near, larger steps see only one branch, and at smaller ones rounding exceeds their distance.
bool Comparison::may_hide_a_kink(const Line& line, double difference) const {
  const double step = 1e-3 * line.scale;
  const Moves moves = moves_along(line, step);
  const double curvature = std::abs(moves.up - moves.down) / (step * step);
  return difference * difference < 100 * curvature * moves.noise && std::abs(difference) < curvature * step;
}

/// Whether the gradient jumps here by what is missing: where several kinks meet, that of right vjps need not lie
/// between the one-sided derivatives.
bool Comparison::jumps(const Line& line, const Compared& compared) {
  if (jumps_.empty()) {
    jumps_.assign(subject_.gradients.size(), scalar(0, DType::f64));
    for (int way = 0; way < 8; ++way) add_jumps(line_of_all(subject_, rng_));  // ties break in many ways
  }
  double jump = 0;
  for (const auto& [input, direction] : line.directions) jump += 4 * dot(jumps_[input], Tensor(abs(direction)));
  return jump > std::abs(compared.checked.analytic - compared.checked.numeric);
}

/// Comparisons at points at a small distance on either side.
std::vector<Comparison>& Comparison::beside() {
  if (beside_) return *beside_;
  beside_.emplace();
  const Line way = line_of_all(subject_, rng_);
  for (const double distance : {0x1p-10, -0x1p-10}) {
    Subject there = subject_;
    there.inputs = point_on(way, distance);
    Comparison comparison(std::move(there));
    comparison.has_neighbors_ = false;
    if (comparison.obstacle().empty()) beside_->push_back(std::move(comparison));
  }
  return *beside_;
}

}  // namespace braid::detail
