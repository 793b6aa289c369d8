#include <braid/autograd/verify/gradcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <braid/autograd/verify/detail/blame.h>
#include <braid/autograd/verify/detail/comparison.h>
#include <braid/autograd/verify/detail/differences.h>
#include <braid/autograd/verify/detail/lines.h>

namespace braid {
namespace {

using namespace detail;

/// `input 0, element [1]: analytic .., numeric .. +- .., relative error .., tolerance ..`
std::string describe(const CheckedDerivative& c, double tolerance) {
  return formatted("{}, {}: analytic {:.10g}, numeric {:.10g} +- {:.1g}, relative error {:.3g}, tolerance {:.3g}",
                   c.input, c.where, c.analytic, c.numeric, c.uncertainty, c.relative_error, tolerance);
}

/// A line `12 derivatives: 1 wrong, 0 undecidable, ..`; empty when all are right.
std::string counts(const GradcheckResult& r) {
  if (r.wrong + r.undecidable + r.kinks + r.unchecked == 0) return "";
  const std::string unchecked = r.unchecked > 0 ? fmt::format(", {} unchecked", r.unchecked) : "";
  return fmt::format("\n{} derivatives: {} wrong, {} undecidable, {} at kinks{}", r.derivatives, r.wrong, r.undecidable,
                     r.kinks, unchecked);
}

/// A line `f does not depend on ..` for every input whose derivatives are all zero up to the error of differences.
std::string without_influence(const std::vector<CheckedDerivative>& all, const char* f) {
  std::map<std::string, bool> moves;
  for (const CheckedDerivative& c : all)
    moves[c.input] |= std::abs(c.numeric) > c.uncertainty || c.verdict != Verdict::right;
  std::string sentences;
  for (const auto& [input, does] : moves)
    if (!does) sentences += fmt::format("\n{} does not depend on {}, as far as differences can tell", f, input);
  return sentences;
}

/// Adds a derivative to the counts and the list.
void count(GradcheckResult& result, CheckedDerivative checked) {
  ++result.derivatives;
  result.wrong += checked.verdict == Verdict::wrong;
  result.undecidable += checked.verdict == Verdict::undecidable;
  result.kinks += checked.verdict == Verdict::kink;
  result.unchecked += checked.verdict == Verdict::unchecked;
  result.worst = std::max(result.worst, std::get<double>(severity(checked)));
  result.checked.push_back(std::move(checked));
}

/// The derivatives of <dy, f> in all directions that are checked, as a result.
class Gradcheck {
 public:
  explicit Gradcheck(Subject subject) : comparison_(std::move(subject)) {}

  GradcheckResult run() {
    if (!comparison_.obstacle().empty())
      return {.ok = false, .worst = INFINITY, .message = fmt::format("gradcheck: {}", comparison_.obstacle())};
    const std::vector<Line> lines = lines_through(subject_, comparison_.rng());
    for (const Line& line : lines) {
      count(result_, comparison_.check(line));
      if (options_.progress) options_.progress(result_.derivatives, static_cast<std::int64_t>(lines.size()));
    }
    result_.message = "gradcheck: no elements to compare";
    if (!lines.empty()) summarize(lines);
    return result_;
  }

 private:
  /// The check of one wrong element of a direction along which the gradient is wrong.
  CheckedDerivative wrong_element(const std::pair<std::size_t, Tensor>& moves) {
    const auto& [input, direction] = moves;
    const auto wrong = [&](std::int64_t begin, std::int64_t end) {
      const Line part{subject_.names[input], "", {{input, only(direction, begin, end)}}};
      return comparison_.check(part).verdict == Verdict::wrong;
    };
    return comparison_.check(line_of_element(subject_, input, bisect(direction.numel(), wrong)));
  }

  /// Writes the message: the worst decided derivative first, the wrong vjp last.
  void summarize(const std::vector<Line>& lines) {
    const auto worst = std::ranges::max_element(result_.checked, {}, severity);
    result_.ok = result_.wrong + result_.unchecked == 0;
    result_.message = fmt::format("gradcheck{}: {}{}", subject_.differentiated != nullptr ? " of second order" : "",
                                  result_.ok ? "passed; the worst is " : "", describe(*worst, options_.tolerance));
    const auto& directions = lines[static_cast<std::size_t>(worst - result_.checked.begin())].directions;
    if (result_.wrong > 0 && directions.size() == 1 && directions.front().second.numel() > options_.max_elements)
      result_.message += fmt::format("\nthere {}", describe(wrong_element(directions.front()), options_.tolerance));
    result_.message += counts(result_);
    result_.message += without_influence(result_.checked, subject_.differentiated != nullptr ? "f's gradient" : "f");
    if (const double rounding = comparison_.amplification(); rounding > 1e4)
      result_.message +=
          fmt::format("\nf rounds to {:.0e} of its values: does it compute in f32 somewhere?", rounding * kEpsilon);
    if (result_.wrong > 0 && options_.blame) {
      const Blame blame = blamed();
      result_.message += fmt::format("\n{}", blame.sentence);
      result_.wrong_op = blame.op;
    }
  }

  /// Where f differentiates and no vjp is wrong, a rule is.
  Blame blamed() const {
    if (subject_.differentiated != nullptr) return blame_rules(*subject_.differentiated, subject_);
    Blame vjps = blame(subject_, comparison_.dy(), comparison_.amplification());
    if (!vjps.all_right) return vjps;
    Blame rules = blame_rules(subject_.f, subject_);
    return rules.op ? rules : vjps;
  }

  Comparison comparison_;
  const Subject& subject_ = comparison_.subject();
  const GradcheckOptions& options_ = subject_.options;
  GradcheckResult result_;
};

/// The check without steps; f's vjps are blamed when it fails.
GradcheckResult by_rules(const Subject& subject) {
  const auto& [f, inputs, names, options, differentiated, size, gradients] = subject;
  for (std::size_t i = 0; i < inputs.size(); ++i) check_f64(inputs[i], fmt::format("input {}", i));
  auto [checked, tolerance] = check_without_steps(f, inputs, options.seed);
  GradcheckResult result{.ok = checked.verdict == Verdict::right};
  result.message = formatted(
      "gradcheck by rules: {}{}, {}: by vjps {:.10g}, by rules {:.10g}, relative error {:.3g}, tolerance {:.3g}",
      result.ok ? "passed; the worst is " : "", checked.input, checked.where, checked.analytic, checked.numeric,
      checked.relative_error, tolerance);
  if (checked.verdict == Verdict::unchecked)
    result.message += std::isfinite(checked.relative_error)
                          ? "\nin f32 or bf16, rounding hides errors below the tolerance; compare in f64"
                          : "\nneither is finite, so nothing was compared; a CheckFinite scope finds the op";
  if (checked.verdict == Verdict::wrong && options.blame) {
    Rng rng = Rng(options.seed).split();
    const Tensor dy = random_signs(f(std::vector<Var>(inputs.begin(), inputs.end())).shape(), rng);
    const Blame rules = blame_rules(f, subject), vjps = blame(subject, dy, 1);
    result.message += fmt::format("\n{}\n{}", rules.sentence, vjps.sentence);
    result.wrong_op = vjps.op ? vjps.op : rules.op;
  }
  count(result, std::move(checked));
  return result;
}

/// Adds the derivatives of a further check; the message is that of the first one that fails, or else of the worst.
void add(GradcheckResult& result, const GradcheckResult& further) {
  if (result.message.empty() || !further.ok || further.worst > result.worst) result.message = further.message;
  if (!result.wrong_op) result.wrong_op = further.wrong_op;
  result.ok &= further.ok;
  result.worst = std::max(result.worst, further.worst);
  for (const CheckedDerivative& checked : further.checked) count(result, checked);
}

}  // namespace

GradcheckResult gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options, const std::vector<std::string>& names) {
  check_value(options.order == 1 || options.order == 2, "gradcheck: order must be 1 or 2 but is {}", options.order);
  GradcheckResult result;
  if (options.by != GradcheckOptions::By::rules) result = Gradcheck({f, inputs, names, options}).run();
  if (result.ok && options.by != GradcheckOptions::By::differences) add(result, by_rules({f, inputs, names, options}));
  if (result.ok && options.order == 2) {
    Rng rng = Rng(options.seed + 1).split();
    const Tensor y = f(std::vector<Var>(inputs.begin(), inputs.end())).value(), dy = random_signs(y.shape(), rng);
    const GradcheckFunction gradient = gradient_function(f, dy);
    add(result, Gradcheck({gradient, inputs, names, options, &f, root_square_sum(dy, y)}).run());
  }
  static constexpr std::array kBy{"differences", "rules", "differences and rules"};
  if (const auto passed = result.message.find(": passed"); result.ok && passed != std::string::npos)
    result.message.replace(0, passed,
                           fmt::format("gradcheck by {}{}", kBy[static_cast<std::size_t>(options.by)],
                                       options.order == 2 ? ", of first and second order" : ""));
  return result;
}

}  // namespace braid
