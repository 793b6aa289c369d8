#include <braid/autograd/gradcheck.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include <braid/autograd/detail/blame.h>
#include <braid/autograd/detail/differences.h>
#include <braid/autograd/detail/rounding.h>
#include <braid/autograd/detail/verdict.h>
#include <braid/core/map.h>

namespace braid {
namespace {

using namespace detail;

/// A line through the inputs along which the derivative is taken.
struct Line {
  std::string input, where;                                // in words
  std::vector<std::pair<std::size_t, Tensor>> directions;  // of the inputs that move
  double scale = 1;                                        // steps are relative to it
  double from = 0;                                         // the value of the only element that moves
  double largest = 0;                                      // gradient of that input
};

void check_f64(const Tensor& x, const std::string& what) {
  check_dtype(x.dtype() == DType::f64, "gradcheck: {} must be f64 but is {}", what, name(x.dtype()));
}

/// `blocks.3.mlp.up.weight` belongs to `blocks.3`, `norm.weight` to `norm`.
std::string group_of(const std::string& name) {
  const std::size_t first = name.find('.');
  if (first == name.npos) return "";
  const bool numbered = first + 1 < name.size() && std::isdigit(static_cast<unsigned char>(name[first + 1])) != 0;
  return name.substr(0, numbered ? name.find('.', first + 1) : first);
}

class Gradcheck {
 public:
  Gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options,
            const std::vector<std::string>& names)
      : f_(f), inputs_(inputs), options_(options), names_(names), rng_(Rng(options.seed).split()) {
    for (std::size_t i = names_.size(); i < inputs.size(); ++i) names_.push_back(fmt::format("input {}", i));
    for (std::size_t i = 0; i < inputs.size(); ++i) check_f64(inputs[i], names_[i]);
  }

  GradcheckResult run() {
    if (diagnosed()) return result_;
    differentiate();
    noise_ = rounding_errors([this, line = joint_line("", "")](double t) { return evaluate(line, t); });
    const std::vector<Line> lines = all_lines();
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
  void differentiate();
  std::vector<Tensor> gradients_at(const std::vector<Tensor>& inputs, const Tensor& dy) const;
  bool diagnosed();
  bool fails(const std::string& sentence);
  double amplification() const;
  std::vector<Line> all_lines();
  void add_lines(std::vector<Line>& lines, std::size_t input);
  Line joint_line(const std::string& name, const std::string& group);
  Tensor evaluate(const Line& line, double t) const;
  Derivative derivative_along(const Line& line, double scale, double floor) const;
  CheckedDerivative check(const Line& line) const;
  void count(CheckedDerivative checked);
  CheckedDerivative wrong_element(const std::pair<std::size_t, Tensor>& moves) const;
  void summarize(const std::vector<Line>& lines);

  const GradcheckFunction& f_;
  const std::vector<Tensor>& inputs_;
  const GradcheckOptions& options_;
  std::vector<std::string> names_;
  Rng rng_;
  Tensor y_, dy_;
  std::vector<Tensor> gradients_, jumps_;
  Tensor noise_;  // the rounding error of each element of y
  GradcheckResult result_;
};

/// The gradients of <dy, f(inputs)>, the way users get them, and how far they jump when inputs change in their last
/// bits: by rounding, or at a kink, where the chain rule need not hold.
void Gradcheck::differentiate() {
  dy_ = random_signs(y_.shape(), rng_);
  gradients_ = gradients_at(inputs_, dy_);
  for (const Tensor& gradient : gradients_) jumps_.push_back(zeros(gradient.shape(), DType::f64));
  std::vector<Tensor> directions;
  for (const Tensor& x : inputs_) directions.push_back(random_direction(x, rng_));
  const Tensor turn = random_direction(dy_, rng_);
  for (const double last_bits : {0x1p-45, -0x1p-45}) {
    std::vector<Tensor> nearby;
    for (std::size_t i = 0; i < inputs_.size(); ++i) nearby.push_back(moved(inputs_[i], directions[i], last_bits));
    const std::vector<Tensor> there = gradients_at(nearby, moved(dy_, turn, last_bits));
    for (std::size_t i = 0; i < jumps_.size(); ++i) {
      const auto larger = [](auto jump, auto g, auto h) { return std::max(jump, std::abs(g - h)); };
      jumps_[i] = map("gradcheck", larger, jumps_[i], gradients_[i], there[i]);
    }
  }
}

std::vector<Tensor> Gradcheck::gradients_at(const std::vector<Tensor>& inputs, const Tensor& dy) const {
  Tape tape;
  std::vector<Var> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  const Var y = f_(watched);
  tape.backward(y, dy);
  std::vector<Tensor> gradients;
  for (const Var& input : watched) gradients.push_back(tape.gradient(input));
  return gradients;
}

bool Gradcheck::fails(const std::string& sentence) {
  result_.ok = false;
  result_.worst = std::numeric_limits<double>::infinity();
  result_.message = fmt::format("gradcheck: {}", sentence);
  return true;
}

bool Gradcheck::diagnosed() {
  std::vector<Tensor> before;
  for (const Tensor& input : inputs_) before.push_back(input.clone());
  const std::vector<Var> point(inputs_.begin(), inputs_.end());
  const Tensor first = f_(point).value(), again = f_(point).value();
  check_f64(first, "the output of f");
  y_ = first;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (!identical(inputs_[i], before[i])) return fails(fmt::format("f changes {}, which it may only read", names_[i]));
  if (first.shape() != again.shape() || !identical(first, again))
    return fails(
        "f is not deterministic: two calls with the same inputs differ; when it draws random numbers, as dropout does, "
        "give each call a copy of one Rng");
  const std::vector<double> values = first.to_vector<double>();
  const auto odd = std::ranges::find_if_not(values, [](double v) { return std::isfinite(v); });
  if (odd != values.end())
    return fails(fmt::format("f returns {} in {} of its output {}", *odd,
                             element_name(first.shape(), odd - values.begin()), first.shape()));
  return false;
}

/// How much larger the rounding error of the outputs is than that of storing them.
double Gradcheck::amplification() const {
  const double stored = std::numeric_limits<double>::epsilon() * root_square_sum(dy_, y_);
  return stored > 0 ? std::max(1.0, root_square_sum(dy_, noise_) / stored) : 1;
}

/// One line an element, or random ones when there are too many elements.
void Gradcheck::add_lines(std::vector<Line>& lines, std::size_t input) {
  const Tensor& x = inputs_[input];
  if (x.numel() > options_.max_elements) {
    for (int i = 0; i < options_.directions; ++i)
      lines.push_back({names_[input], fmt::format("random direction {}", i), {{input, random_direction(x, rng_)}}});
    return;
  }
  const std::vector<double> values = x.to_vector<double>(), sizes = scales(x).to_vector<double>(),
                            gradient = gradients_[input].to_vector<double>();
  double largest = 0;
  for (const double g : gradient)
    if (std::isfinite(g)) largest = std::max(largest, std::abs(g));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    lines.push_back(
        {names_[input], element_name(x.shape(), i), {{input, unit(x.shape(), i)}}, sizes[at], values[at], largest});
  }
}

/// All inputs of a group together.
Line Gradcheck::joint_line(const std::string& name, const std::string& group) {
  Line line{name, "random direction", {}};
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (group.empty() || group_of(names_[i]) == group)
      line.directions.emplace_back(i, random_direction(inputs_[i], rng_));
  return line;
}

std::vector<Line> Gradcheck::all_lines() {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < inputs_.size(); ++i) add_lines(lines, i);
  std::map<std::string, int> groups;
  for (const std::string& name : names_) ++groups[group_of(name)];
  for (const auto& [group, members] : groups)
    if (!group.empty() && members > 1) lines.push_back(joint_line(group, group));
  if (inputs_.size() > 1 && !lines.empty()) lines.push_back(joint_line("all together", ""));
  return lines;
}

Tensor Gradcheck::evaluate(const Line& line, double t) const {
  std::vector<Var> point(inputs_.begin(), inputs_.end());
  for (const auto& [input, direction] : line.directions) point[input] = moved(inputs_[input], direction, t);
  return f_(point).value();
}

/// Stops when the derivative is certain enough for a verdict.
Derivative Gradcheck::derivative_along(const Line& line, double scale, double floor) const {
  Extrapolation extrapolation;
  const auto add = [&](double step) -> const Extrapolation& {
    step = (line.from + step) - line.from;  // as far as it really gets
    Movement movement;
    movement.add(dy_, evaluate(line, step), y_, evaluate(line, -step), noise_);
    extrapolation.add(step, movement.moves(step, line.scale));
    return extrapolation;
  };
  const auto certain = [&](const Derivative& d) {
    return d.error <= 0.1 * options_.tolerance * std::max(std::abs(d.value), floor);
  };
  return descend(scale, add, certain);
}

CheckedDerivative Gradcheck::check(const Line& line) const {
  CheckedDerivative checked{line.input, line.where};
  double norm = 0, jump = 0;
  for (const auto& [input, direction] : line.directions) {
    checked.analytic += dot(gradients_[input], direction);
    norm = std::hypot(norm, root_square_sum(gradients_[input], direction));
    jump += 4 * dot(jumps_[input], map(
                                       "gradcheck", [](auto v) { return std::abs(v); }, direction));
  }
  if (!std::isfinite(norm)) norm = 0;
  const double floor = 1e-3 * std::max(line.largest, norm);
  // Coarse steps may all miss what is narrow or near. So what is wrong has to stay wrong at finer ones, as far as these
  // are certain enough to tell.
  double difference = std::numeric_limits<double>::infinity();
  for (const double fineness : {1.0, 1e-3, 1e-6}) {
    Derivative numeric = derivative_along(line, fineness * line.scale, floor);
    const double uncertainty = numeric.error;
    if (!(uncertainty < 0.1 * difference) && fineness < 1) continue;
    if (std::isfinite(jump)) numeric.error += jump;
    checked.numeric = numeric.value;
    checked.uncertainty = uncertainty;
    checked.relative_error = relative_error(checked.analytic, numeric, floor);
    checked.verdict = judge(checked.analytic, numeric, floor, options_.tolerance);
    if (checked.verdict != Verdict::wrong || result_.wrong >= 8) break;
    difference = std::abs(checked.analytic - checked.numeric);
  }
  if (checked.verdict != Verdict::undecidable) return checked;
  // What moves the output by less than half of its digits cannot be told from zero.
  const double negligible = 1e-8 * root_square_sum(dy_, y_) / line.scale;
  if (jump > negligible) {
    checked.verdict = Verdict::kink;
  } else if (std::abs(checked.analytic) + std::abs(checked.numeric) + checked.uncertainty <= negligible) {
    checked.verdict = Verdict::right;
    checked.relative_error = 0;
  }
  return checked;
}

void Gradcheck::count(CheckedDerivative checked) {
  ++result_.derivatives;
  result_.wrong += checked.verdict == Verdict::wrong;
  result_.undecidable += checked.verdict == Verdict::undecidable;
  result_.kinks += checked.verdict == Verdict::kink;
  result_.checked.push_back(std::move(checked));
}

/// One element of a direction along which the gradient is wrong.
CheckedDerivative Gradcheck::wrong_element(const std::pair<std::size_t, Tensor>& moves) const {
  const auto& [input, direction] = moves;
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return check({names_[input], element_name(direction.shape(), begin), {{input, only(direction, begin, end)}}});
  };
  const auto wrong = [&](std::int64_t begin, std::int64_t end) { return part(begin, end).verdict == Verdict::wrong; };
  const std::int64_t element = bisect(direction.numel(), wrong);
  return part(element, element + 1);
}

/// The worst derivative that is decided comes first, and the vjp at fault last.
void Gradcheck::summarize(const std::vector<Line>& lines) {
  const auto worst = std::ranges::max_element(result_.checked, {}, severity);
  result_.ok = result_.wrong == 0;
  for (const CheckedDerivative& c : result_.checked) result_.worst = std::max(result_.worst, severity(c).error);
  result_.message = fmt::format("gradcheck: {}", describe(*worst, options_.tolerance));
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
  if (!result_.ok && options_.blame)
    result_.message +=
        fmt::format("\n{}", blame(f_, inputs_, dy_, {options_.tolerance, amplification(), options_.seed}));
}

}  // namespace

GradcheckResult gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options, const std::vector<std::string>& names) {
  return Gradcheck(f, inputs, options, names).run();
}

}  // namespace braid
