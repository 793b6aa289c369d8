#include <braid/nn/verify/precision_report.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

namespace braid::nn {
namespace {

using Row = PrecisionReport::Row;
using Flat = std::vector<double>;  // of all parameters, concatenated
using Part = std::span<const double>;

double dot(Part a, Part b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
double norm(Part a) { return std::sqrt(dot(a, a)); }
double ratio(double error, double size) { return error == 0 ? 0 : error / size; }

Flat minus(const Flat& a, const Flat& b) {
  Flat result(a.size());
  std::ranges::transform(a, b, result.begin(), std::minus());
  return result;
}

/// The share of a change in an error; a change that is not finite explains all of it.
double share_of(Part change, Part error) {
  if (!std::isfinite(norm(change))) return 1;
  const double size = dot(error, error);
  return size > 0 && std::isfinite(size) ? dot(change, error) / size : 0;
}

double max_ulps(Part error, Part exact, DType dtype) {
  if (!std::isfinite(norm(error))) return std::numeric_limits<double>::quiet_NaN();
  double worst = 0, largest = 0;
  for (const double g : exact) largest = std::max(largest, std::abs(g));
  dispatch_float("precision_report", dtype, [&](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    for (std::size_t i = 0; i < error.size(); ++i) {
      const int exponent = std::ilogb(std::max(std::abs(exact[i]), largest / 1024));
      const double ulp = std::ldexp(double{Limits::epsilon()}, std::max(exponent, Limits::min_exponent - 1));
      worst = std::max(worst, std::abs(error[i]) / ulp);
    }
  });
  return worst;
}

/// The place of a parameter's gradient among all.
struct Place {
  std::size_t begin, size;
  Part in(const Flat& flat) const { return Part(flat).subspan(begin, size); }
};

/// Fills in the contributions of each kind of op: the ops, the worst op of each row, and the remainder.
void find_causes(PrecisionReport& report, detail::Rounding& rounding, const Flat& error,
                 const std::vector<Place>& places) {
  const double size = norm(rounding.exact().gradient);
  Flat rest = error;
  for (const std::string& kind : rounding.kinds()) {
    const Flat change = rounding.change(kind);
    rest = minus(rest, change);
    report.ops.push_back({kind, ratio(norm(change), size), share_of(change, error)});
    for (std::size_t i = 0; i < places.size(); ++i) {
      Row& row = report.rows[i];
      const double share = share_of(places[i].in(change), places[i].in(error));
      if (share > row.share) std::tie(row.worst_op, row.share) = std::tie(kind, share);
    }
  }
  std::ranges::stable_sort(report.ops, std::greater(), &PrecisionReport::Op::share);
  report.remainder = ratio(norm(rest), norm(error));
}

/// Sorts the largest first, NaN before all.
bool precedes(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

}  // namespace

PrecisionReport detail::precision_report(const LossFunction& loss, const std::vector<NamedParam>& params, DType dtype) {
  check<Error>(!params.empty(), "precision_report: the module has no parameters");
  std::vector<Tensor> low;
  for (const NamedParam& param : params) low.push_back(param.param->value().to(dtype));
  Rounding rounding(loss, low);
  const Evaluation &measured = rounding.measured(), &exact = rounding.exact();
  const Flat error = minus(measured.gradient, exact.gradient);
  PrecisionReport report{
      .dtype = dtype,
      .loss = exact.loss.item(),
      .loss_error = ratio(std::abs(measured.loss.item() - exact.loss.item()), std::abs(exact.loss.item())),
      .relative_error = ratio(norm(error), norm(exact.gradient))};
  std::vector<Place> places;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const Place place{begin, static_cast<std::size_t>(low[i].numel())};
    places.push_back(place);
    begin += place.size;
    const Part off = place.in(error), truth = place.in(exact.gradient);
    report.rows.push_back({params[i].name, norm(truth), ratio(norm(off), norm(truth)), max_ulps(off, truth, dtype)});
  }
  find_causes(report, rounding, error, places);
  return report;
}

std::string PrecisionReport::table(std::size_t most_rows) const {
  std::string text = fmt::format("{:<18}  {:>8}\n{:<18}  {:>8.1e}\n{:<18}  {:>8.1e}    share\n",
                                 fmt::format("{} beside f64", braid::name(dtype)), "error", "loss", loss_error,
                                 "gradient", relative_error);
  for (const Op& op : ops)
    text += fmt::format("  {:<16}  {:>8.1e}  {:>5.1f} %\n", op.name, op.relative_error, 100 * op.share);
  text += fmt::format("  {:<16}  {:>8.1e}\n\n", "remainder", remainder * relative_error);

  std::vector<Row> sorted = rows;
  std::ranges::stable_sort(sorted, precedes, &Row::relative_error);
  sorted.resize(std::min(most_rows, rows.size()));
  std::size_t width = 9;
  for (const Row& row : sorted) width = std::max(width, row.name.size());
  text += fmt::format("{:<{}}  {:>8}  {:>8}  {:>9}  worst op\n", "parameter", width, "gradient", "error", "ulps");
  for (const Row& row : sorted)
    text += fmt::format("{:<{}}  {:>8.1e}  {:>8.1e}  {:>9.1f}  {}\n", row.name, width, row.gradient, row.relative_error,
                        row.max_ulps,
                        row.worst_op.empty() ? "-" : fmt::format("{}, {:.0f} %", row.worst_op, 100 * row.share));
  if (sorted.size() < rows.size()) text += fmt::format("{} more with smaller errors\n", rows.size() - sorted.size());
  return text;
}

}  // namespace braid::nn
