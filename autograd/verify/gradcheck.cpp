#include <braid/autograd/verify/gradcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops/abs.h>
#include <braid/autograd/verify/detail/blame.h>
#include <braid/autograd/verify/detail/blame_rules.h>
#include <braid/autograd/verify/detail/diagnosis.h>
#include <braid/autograd/verify/detail/differences.h>
#include <braid/autograd/verify/detail/lines.h>
#include <braid/autograd/verify/detail/rounding.h>
#include <braid/autograd/verify/detail/rules.h>
#include <braid/autograd/verify/verdict.h>
#include <braid/core/map.h>

namespace braid {
namespace {

using namespace detail;

constexpr int kJumpPoints = 2, kManyJumpPoints = 32;

class Gradcheck {
 public:
  Gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options,
            const std::vector<std::string>& names, const GradcheckFunction* differentiated = nullptr)
      : f_(f),
        differentiated_(differentiated),
        inputs_(inputs),
        options_(options),
        names_(names),
        rng_(Rng(options.seed).split()) {
    for (std::size_t i = names_.size(); i < inputs.size(); ++i) names_.push_back(fmt::format("input {}", i));
    for (std::size_t i = 0; i < inputs.size(); ++i) check_f64(inputs[i], names_[i]);
  }

  GradcheckResult run() {
    if (diagnosed() || !differentiated()) return result_;
    const std::vector<Line> lines = lines_through(point(), rng_);
    for (const Line& line : lines) {
      count(check(line));
      if (options_.progress) options_.progress(result_.derivatives, static_cast<std::int64_t>(lines.size()));
    }
    if (lines.empty())
      result_.message = "gradcheck: no elements to compare";
    else
      summarize(lines);
    return result_;
  }

 private:
  Point point() const { return {inputs_, names_, gradients_, options_}; }

  /// Computes the gradients of <dy, f(inputs)> as users do; false when two passes differ.
  bool differentiated() {
    dy_ = random_signs(y_.shape(), rng_);
    gradients_ = gradients(inputs_, dy_);
    const std::vector<Tensor> again = gradients(inputs_, dy_);
    for (std::size_t i = 0; i < again.size(); ++i)
      if (!identical(gradients_[i], again[i]))
        return !fails(fmt::format("the gradient of {} is not deterministic: two backward passes differ", names_[i]));
    measure_jumps(kJumpPoints);
    noise_ = noise_of_outputs();
    return true;
  }

  std::vector<Tensor> gradients(const std::vector<Tensor>& inputs, const Tensor& dy, Probe* probe = nullptr) const {
    std::optional<HigherOrder> scope;
    if (differentiated_ != nullptr) scope.emplace();
    return gradients_at(f_, inputs, dy, probe);
  }

  Tensor noise_of_outputs(bool beside_kinks = false) {
    const Line line = line_of_all(point(), rng_);
    return rounding_errors([&](double t) { return evaluate(line, t); }, beside_kinks);
  }

  /// Measures how far gradients jump when inputs change in their last bits: by rounding, or at a kink, where the chain
  /// rule need not hold.
  void measure_jumps(int points) {
    if (jumps_.empty())
      for (const Tensor& gradient : gradients_) jumps_.push_back(zeros(gradient.shape(), DType::f64));
    const Line line = line_of_all(point(), rng_);
    const Tensor turn = random_direction(dy_, rng_);
    for (; jump_points_ < points; ++jump_points_) {
      const double last_bits = (jump_points_ % 2 == 0 ? 0x1p-45 : -0x1p-45) * (1 + jump_points_ / 2);
      RoundsDifferently probe(rng_.split());
      const auto there = gradients(point_on(line, last_bits), moved(dy_, turn, last_bits), &probe);
      for (std::size_t i = 0; i < jumps_.size(); ++i) {
        const auto larger = [](auto jump, auto g, auto h) { return std::max(jump, std::abs(g - h)); };
        jumps_[i] = map("gradcheck", larger, jumps_[i], gradients_[i], there[i]);
      }
    }
  }

  bool fails(const std::string& sentence) {
    result_.ok = false;
    result_.worst = std::numeric_limits<double>::infinity();
    result_.message = fmt::format("gradcheck: {}", sentence);
    return true;
  }

  bool diagnosed() {
    const Diagnosis diagnosis = diagnose(f_, inputs_, names_);
    y_ = diagnosis.y;
    return !diagnosis.sentence.empty() && fails(diagnosis.sentence);
  }

  /// The rounding error of the outputs, in units of the error of storing them.
  double amplification() const {
    const double stored = std::numeric_limits<double>::epsilon() * root_square_sum(dy_, y_);
    return stored > 0 ? std::max(1.0, root_square_sum(dy_, noise_) / stored) : 1;
  }

  std::vector<Tensor> point_on(const Line& line, double t) const {
    std::vector<Tensor> point = inputs_;
    for (const auto& [input, direction] : line.directions) point[input] = moved(inputs_[input], direction, t);
    return point;
  }

  Tensor evaluate(const Line& line, double t) const {
    const std::vector<Tensor> point = point_on(line, t);
    return f_(std::vector<Var>(point.begin(), point.end())).value();
  }

  Moves moves_along(const Line& line, double step, const Tensor& noise) const {
    Movement movement;
    movement.add(dy_, evaluate(line, step), y_, evaluate(line, -step), noise);
    return movement.moves(step, line.scale);
  }

  /// The derivative along a line, as accurate as a verdict needs.
  Derivative derivative_along(const Line& line, double scale, double floor, const Tensor& noise) const {
    Extrapolation extrapolation;
    const auto add = [&](double step) -> const Extrapolation& {
      step = (line.from + step) - line.from;  // the step as rounded
      extrapolation.add(step, moves_along(line, step, noise));
      return extrapolation;
    };
    const auto certain = [&](const Derivative& d) {
      return d.error <= 0.1 * options_.tolerance * std::max(std::abs(d.value), floor);
    };
    return descend(scale, add, certain);
  }

  /// The derivative along a line by the gradients.
  struct Analytic {
    double value = 0;
    double floor = 0;  // smaller derivatives are compared with this one
    double jump = 0;   // the uncertainty of the value
  };

  Analytic analytic_along(const Line& line) const {
    Analytic sum;
    double norm = 0;
    for (const auto& [input, direction] : line.directions) {
      const Tensor& gradient = gradients_[input];
      sum.value += dot(gradient, direction);
      norm = std::hypot(norm, root_square_sum(gradient, direction));
      sum.jump += 4 * dot(jumps_[input], Tensor(abs(direction)));
    }
    sum.floor = 1e-3 * std::max(line.largest, std::isfinite(norm) ? norm : 0);
    return sum;
  }

  CheckedDerivative check(const Line& line) {
    CheckedDerivative checked = compare(line, noise_);
    if (checked.verdict == Verdict::wrong) checked = compare_again(line);
    if (checked.verdict == Verdict::wrong && may_hide_a_kink(line, checked.analytic - checked.numeric))
      checked.verdict = Verdict::undecidable;
    // Where f is constant up to rounding, a derivative below the rounding of the inputs cannot be distinguished from 0.
    const bool still = checked.numeric == 0 && checked.uncertainty == 0;
    const double lost = std::numeric_limits<double>::epsilon() * line.scale;
    if (still && std::abs(checked.analytic) * std::max(line.scale, 1.0) <= lost) {
      checked.verdict = Verdict::right;
      checked.relative_error = 0;
    }
    if (checked.verdict != Verdict::undecidable) return checked;
    // A derivative that moves the output by less than half of its digits cannot be distinguished from 0.
    const double jump = analytic_along(line).jump;
    const double negligible = 1e-8 * root_square_sum(dy_, y_) / std::max(line.scale, 1.0);
    if (jump > negligible) {
      checked.verdict = is_wrong_beside(line) ? Verdict::wrong : Verdict::kink;
    } else if (std::abs(checked.analytic) + std::abs(checked.numeric) + checked.uncertainty <= negligible) {
      checked.verdict = Verdict::right;
      checked.relative_error = 0;
    }
    return checked;
  }

  /// Compares again, more carefully: two points may miss how much a gradient that consists of rounding changes, and
  /// kinks or poles at some distance may look like coarse rounding.
  CheckedDerivative compare_again(const Line& line) {
    if (jump_points_ < kManyJumpPoints) {
      measure_jumps(kManyJumpPoints);
      if (const CheckedDerivative checked = compare(line, noise_); checked.verdict != Verdict::wrong) return checked;
    }
    if (!noise_beside_kinks_.defined()) noise_beside_kinks_ = noise_of_outputs(/*beside_kinks=*/true);
    return compare(line, noise_beside_kinks_);
  }

  /// The verdict of differences alone.
  CheckedDerivative compare(const Line& line, const Tensor& noise) const {
    const auto [analytic, floor, jump] = analytic_along(line);
    CheckedDerivative checked{line.input, line.where, analytic};
    // Coarse steps may all miss a narrow or near feature of f. So a wrong derivative has to stay wrong at finer steps,
    // as far as these are accurate enough.
    double difference = std::numeric_limits<double>::infinity();
    for (const double fineness : {1.0, 1e-3, 1e-6}) {
      Derivative numeric = derivative_along(line, fineness * line.scale, floor, noise);
      const double uncertainty = numeric.error;
      if (!(uncertainty < 0.1 * difference) && fineness < 1) continue;
      if (std::isfinite(jump)) numeric.error += jump;
      checked.numeric = numeric.value;
      checked.uncertainty = uncertainty;
      checked.relative_error = relative_error(analytic, numeric, floor);
      checked.verdict = judge(analytic, numeric, floor, options_.tolerance);
      if (checked.verdict != Verdict::wrong) break;
      difference = std::abs(analytic - checked.numeric);
    }
    return checked;
  }

  /// Two branches of f whose slopes differ here by `difference` meet again where curvature makes up for it. When that
  /// is near, larger steps see only one branch, and at smaller ones rounding exceeds their distance.
  bool may_hide_a_kink(const Line& line, double difference) const {
    const double step = 1e-3 * line.scale;
    const Moves moves = moves_along(line, step, noise_);
    const double curvature = std::abs(moves.up - moves.down) / (step * step);
    return difference * difference < 100 * curvature * moves.noise;
  }

  /// Where several kinks meet, the gradient of right vjps need not lie between the one-sided derivatives. At a small
  /// distance on either side it has to be right.
  bool is_wrong_beside(const Line& line) {
    if (!beside_) find_points_beside();
    return std::ranges::any_of(*beside_, [&](Gradcheck& point) { return point.check(line).verdict == Verdict::wrong; });
  }

  void find_points_beside() {
    beside_.emplace();
    const Line line = line_of_all(point(), rng_);
    for (const double distance : {0x1p-10, -0x1p-10}) {
      Gradcheck point(f_, point_on(line, distance), options_, names_, differentiated_);
      point.beside_.emplace();  // it has none of its own
      if (!point.diagnosed() && point.differentiated()) beside_->push_back(std::move(point));
    }
  }

  void count(CheckedDerivative checked) {
    ++result_.derivatives;
    result_.wrong += checked.verdict == Verdict::wrong;
    result_.undecidable += checked.verdict == Verdict::undecidable;
    result_.kinks += checked.verdict == Verdict::kink;
    result_.checked.push_back(std::move(checked));
  }

  /// The check of one wrong element of a direction along which the gradient is wrong.
  CheckedDerivative wrong_element(const std::pair<std::size_t, Tensor>& moves) {
    const auto& [input, direction] = moves;
    const auto wrong = [&](std::int64_t begin, std::int64_t end) {
      return check({names_[input], "", {{input, only(direction, begin, end)}}}).verdict == Verdict::wrong;
    };
    return check(line_of_element(point(), input, bisect(direction.numel(), wrong)));
  }

  /// Writes the message: the worst decided derivative first, the wrong vjp last.
  void summarize(const std::vector<Line>& lines) {
    const auto worst = std::ranges::max_element(result_.checked, {}, severity);
    result_.ok = result_.wrong == 0;
    for (const CheckedDerivative& c : result_.checked) result_.worst = std::max(result_.worst, severity(c).error);
    result_.message = fmt::format("gradcheck{}: {}", differentiated_ != nullptr ? " of second order" : "",
                                  describe(*worst, options_.tolerance));
    const auto& directions = lines[static_cast<std::size_t>(worst - result_.checked.begin())].directions;
    if (!result_.ok && directions.size() == 1 && directions.front().second.numel() > options_.max_elements)
      result_.message += fmt::format("\nthere {}", describe(wrong_element(directions.front()), options_.tolerance));
    if (result_.wrong + result_.undecidable + result_.kinks > 0)
      result_.message += fmt::format("\n{} derivatives: {} wrong, {} undecidable, {} at kinks", result_.derivatives,
                                     result_.wrong, result_.undecidable, result_.kinks);
    result_.message += without_influence(result_.checked);
    if (amplification() > 1e4)
      result_.message += fmt::format("\nf rounds to {:.0e} of its values: does it compute in f32 somewhere?",
                                     amplification() * std::numeric_limits<double>::epsilon());
    if (!result_.ok && options_.blame) result_.message += fmt::format("\n{}", blamed());
  }

  std::string blamed() const {
    return differentiated_ != nullptr ? blame_rules(*differentiated_, inputs_, options_.tolerance, options_.seed)
                                      : blame(f_, inputs_, dy_, {options_.tolerance, amplification(), options_.seed});
  }

  const GradcheckFunction& f_;
  const GradcheckFunction* differentiated_;  // the function that f_ is the gradient of, if it is one
  std::vector<Tensor> inputs_;
  const GradcheckOptions& options_;
  std::vector<std::string> names_;
  Rng rng_;
  Tensor y_, dy_;
  Tensor noise_, noise_beside_kinks_;      // the rounding error of each element of y
  std::vector<Tensor> gradients_, jumps_;  // jumps: how much gradients change with the last bits of the inputs
  int jump_points_ = 0;                    // at how many points they were measured
  std::optional<std::vector<Gradcheck>> beside_;
  GradcheckResult result_;
};

/// The check without steps; f's vjps are blamed when it fails.
GradcheckResult by_rules(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                         const GradcheckOptions& options) {
  GradcheckResult result{.derivatives = 1};
  CheckedDerivative checked = check_without_steps(f, inputs, options.seed);
  result.worst = checked.relative_error;
  result.ok = checked.relative_error <= kToRounding;
  checked.verdict = result.ok ? Verdict::right : Verdict::wrong;
  result.wrong = !result.ok;
  result.message = fmt::format("gradcheck by rules: {}", describe(checked, kToRounding));
  if (!result.ok && options.blame) {
    Rng rng = Rng(options.seed).split();
    const Tensor dy = random_signs(f(std::vector<Var>(inputs.begin(), inputs.end())).shape(), rng);
    const std::string rules = blame_rules(f, inputs, options.tolerance, options.seed);
    result.message += fmt::format("\n{}\n{}", rules, blame(f, inputs, dy, {options.tolerance, 1, options.seed}));
  }
  result.checked.push_back(std::move(checked));
  return result;
}

/// Adds the derivatives of a further check; the message is that of the first one that fails, or else of the worst.
void add(GradcheckResult& result, const GradcheckResult& further) {
  if (result.message.empty() || !further.ok || further.worst > result.worst) result.message = further.message;
  result.ok &= further.ok;
  result.worst = std::max(result.worst, further.worst);
  result.derivatives += further.derivatives;
  result.wrong += further.wrong;
  result.undecidable += further.undecidable;
  result.kinks += further.kinks;
  result.checked.insert(result.checked.end(), further.checked.begin(), further.checked.end());
}

}  // namespace

GradcheckResult gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options, const std::vector<std::string>& names) {
  check_value(options.order == 1 || options.order == 2, "gradcheck: order must be 1 or 2 but is {}", options.order);
  GradcheckResult result;
  if (options.by != GradcheckOptions::By::rules) result = Gradcheck(f, inputs, options, names).run();
  if (result.ok && options.by != GradcheckOptions::By::differences) add(result, by_rules(f, inputs, options));
  if (result.ok && options.order == 2) {
    Rng rng = Rng(options.seed + 1).split();
    const Tensor dy = random_signs(f(std::vector<Var>(inputs.begin(), inputs.end())).shape(), rng);
    add(result, Gradcheck(gradient_function(f, dy), inputs, options, names, &f).run());
  }
  return result;
}

}  // namespace braid
