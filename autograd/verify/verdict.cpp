#include <braid/autograd/verify/verdict.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace braid {

std::string_view name(Verdict verdict) {
  static constexpr std::array<std::string_view, 5> kNames{"right", "wrong", "undecidable", "kink", "unchecked"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string GradcheckResult::table() const {
  std::vector<std::string> inputs;
  std::map<std::string, std::vector<CheckedDerivative>> by_input;
  std::size_t width = 5;
  for (const CheckedDerivative& c : checked) {
    if (!by_input.contains(c.input)) inputs.push_back(c.input);
    by_input[c.input].push_back(c);
    width = std::max(width, c.input.size());
  }
  std::string text = fmt::format("{:<{}} {:>6} {:>18} {:>18} {:>9} {:>9}  verdict\n", "input", width, "checks",
                                 "worst: analytic", "numeric", "+-", "rel.error");
  for (const std::string& input : inputs) {
    const auto& list = by_input[input];
    const CheckedDerivative& worst = *std::ranges::max_element(list, {}, detail::severity);
    text += formatted("{:<{}} {:>6} {:>18.10g} {:>18.10g} {:>9.1e} {:>9.1e}  {}\n", input, width, list.size(),
                      worst.analytic, worst.numeric, worst.uncertainty, worst.relative_error, name(worst.verdict));
  }
  return text;
}

double detail::relative_error(double analytic, const Derivative& numeric, double floor) {
  const double size = std::max({std::abs(analytic), std::abs(numeric.value), floor});
  const double error = std::abs(analytic - numeric.value);
  if (!std::isfinite(error)) return INFINITY;
  return error == 0 ? 0 : error / size;
}

Verdict detail::judge(double analytic, const Derivative& numeric, double floor, double tolerance) {
  constexpr double kDigit = 0.1;
  const double size = std::max({std::abs(analytic), std::abs(numeric.value), floor}), allowed = tolerance * size;
  if (std::isnan(analytic)) return Verdict::wrong;
  if (std::isinf(analytic)) {
    const bool certain = numeric.settled && numeric.error <= kDigit * std::max(std::abs(numeric.value), floor);
    return certain ? Verdict::wrong : Verdict::unchecked;
  }
  const double slack = allowed + numeric.bound_error;
  const bool between = numeric.low - slack <= analytic && analytic <= numeric.high + slack;
  if (numeric.has_kink() && between) return Verdict::kink;
  const double error = std::abs(analytic - numeric.value);
  if (error <= allowed && numeric.error <= allowed) return Verdict::right;
  if (!numeric.settled) return Verdict::unchecked;
  if (error > allowed + 3 * numeric.error) {
    const bool slight_kink = numeric.high - numeric.low > 10 * numeric.bound_error;
    return slight_kink && between ? Verdict::kink : Verdict::wrong;
  }
  return error <= allowed || numeric.error <= kDigit * size ? Verdict::undecidable : Verdict::unchecked;
}

std::tuple<int, bool, double> detail::severity(const CheckedDerivative& c) {
  const bool wrong = c.verdict == Verdict::wrong, decided = wrong || c.verdict == Verdict::right;
  const int fails = wrong ? 2 : c.verdict == Verdict::unchecked;
  return {fails, wrong && c.where.starts_with("element"), decided ? c.relative_error : 0};
}

}  // namespace braid
