#include <braid/nn/verify/precision_report.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include <braid/autograd/detail/recording.h>
#include <braid/autograd/verify/detail/differences.h>
#include <braid/core/map.h>

namespace braid::nn {
namespace {

using braid::detail::Recording;
using detail::LossFunction;
using Row = PrecisionReport::Row;
using Flat = std::vector<double>;  // of all parameters, concatenated
using Part = std::span<const double>;

constexpr const char* kAccumulate = "accumulate";

/// What is done with the results of an op and those that were kept.
using Visit = std::function<void(std::string_view op, std::vector<Tensor>& kept, std::span<Tensor> results)>;

/// Visits each result of an op together with the kept one.
class Follow : public Probe {
 public:
  Follow(std::vector<Recording::Op>& traces, Visit visit) : traces_(traces), visit_(std::move(visit)) {}
  void recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>& outputs) override {
    const std::string_view before = op.index < traces_.size() ? std::string_view(traces_[op.index].name) : "none";
    check<Error>(before == op.name, "precision_report: op {} is {} in f64 but was {}; {}", op.index, op.name, before,
                 kRule);
    visit_(op.name, traces_[op.index].results, outputs);
    ops_ = op.index + 1;
  }
  void propagates(const RecordedOp& op, std::span<Tensor> dys) override {
    visit_(kAccumulate, traces_[op.index].dys, dys);
  }
  void propagated(const RecordedOp& op, std::vector<Tensor>& dxs) override {
    visit_(op.name, traces_[op.index].dxs, dxs);
  }
  bool opens_checkpoints() const override { return true; }

  void check_complete() const {
    check<Error>(ops_ == traces_.size(), "precision_report: {} ops in f64 but there were {}; {}", ops_, traces_.size(),
                 kRule);
  }

 private:
  static constexpr const char* kRule = "the loss must evaluate the same ops in each dtype";

  std::vector<Recording::Op>& traces_;
  Visit visit_;
  std::size_t ops_ = 0;
};

/// Two results that are not finite do not differ: the op has only propagated its input.
constexpr auto kDifference = []<class T>(T low, T high) {
  return std::isfinite(low) || std::isfinite(high) ? low - high : T{0};
};

/// Replaces each result by the kept one, so that an op differs by its own rounding alone, and keeps the difference.
void compare(std::string_view, std::vector<Tensor>& kept, std::span<Tensor> results) {
  kept.resize(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor kept_low = std::exchange(kept[i], Tensor());
    if (!kept_low.defined() || !results[i].defined()) continue;
    Tensor low = kept_low.to(results[i].dtype());
    // f32 is precise enough for a difference.
    const Tensor error = map("precision_report", kDifference, low, results[i]).to(DType::f32);
    if (std::ranges::any_of(error.to_vector<float>(), [](float v) { return v != 0; })) kept[i] = error;
    results[i] = std::move(low);
  }
}

struct Evaluation {
  Tensor loss;
  Flat gradient;
};

Evaluation evaluate(const LossFunction& loss, const std::vector<Tensor>& params, Probe* probe = nullptr) {
  Evaluation result;
  const auto f = [&](std::span<const Var> watched) {
    const Var y = loss(watched, params.front().dtype());
    check_shape(y.value().numel() == 1, "precision_report: the loss must be a scalar but has shape {}", y.shape());
    result.loss = y.value();
    return y;
  };
  for (const Tensor& gradient : braid::detail::gradients_at(f, params, {}, probe))
    std::ranges::copy(gradient.to_vector<double>(), std::back_inserter(result.gradient));
  return result;
}

/// f(a, b) of all elements.
Flat combined(Flat a, const Flat& b, const auto& f) {
  std::ranges::transform(a, b, a.begin(), f);
  return a;
}

/// The rounding errors of each op of an evaluation, forward and backward, against the same op in f64.
class Rounding {
 public:
  /// Throws ShapeError unless the loss is a scalar, Error when it is not deterministic or its ops depend on the dtype.
  Rounding(LossFunction loss, const std::vector<Tensor>& low) : loss_(std::move(loss)) {
    Recording recording(/*opens_checkpoints=*/true);
    measured = evaluate(loss_, low, &recording);
    traces_ = std::move(recording.ops);
    const Tensor again = loss_(std::vector<Var>(low.begin(), low.end()), low.front().dtype()).value();
    check<Error>(identical(measured.loss, again), "precision_report: the loss is not deterministic: {} and then {}",
                 measured.loss.item(), again.item());
    for (const Tensor& param : low) params_.push_back(param.to(DType::f64));
    exact = evaluate(loss_, params_);
    Follow comparison(traces_, compare);
    const Evaluation compared = evaluate(loss_, params_, &comparison);
    comparison.check_complete();
    last_sums_ = combined(measured.gradient, compared.gradient, kDifference);
  }

  /// The names of the ops that round, in the order of execution. The sums of cotangents are one of them, `accumulate`.
  std::vector<std::string> kinds() const {
    std::vector<std::string> kinds;
    const auto add = [&](const std::string& kind, bool rounds) {
      if (rounds && std::ranges::count(kinds, kind) == 0) kinds.push_back(kind);
    };
    const auto any = [](const std::vector<Tensor>& errors) { return std::ranges::any_of(errors, &Tensor::defined); };
    for (const Recording::Op& trace : traces_) {
      add(trace.name, any(trace.results) || any(trace.dxs));
      add(kAccumulate, any(trace.dys));
    }
    add(kAccumulate, std::ranges::any_of(last_sums_, [](double e) { return e != 0; }));
    return kinds;
  }

  /// The change of the exact gradient when only the ops of this name round as they did in low precision.
  Flat change(const std::string& kind) {
    const auto add_errors = [&](std::string_view op, std::vector<Tensor>& errors, std::span<Tensor> results) {
      if (op != kind) return;
      for (std::size_t i = 0; i < errors.size(); ++i)
        if (errors[i].defined() && results[i].defined())
          results[i] = map("precision_report", std::plus(), results[i], errors[i].to(results[i].dtype()));
    };
    Follow inject(traces_, add_errors);
    Flat gradient = evaluate(loss_, params_, &inject).gradient;
    if (kind == kAccumulate) gradient = combined(std::move(gradient), last_sums_, std::plus());
    return combined(std::move(gradient), exact.gradient, kDifference);
  }

  Evaluation measured, exact;  // in low precision and in f64

 private:
  LossFunction loss_;
  std::vector<Tensor> params_;         // f64
  std::vector<Recording::Op> traces_;  // of ops in low precision, later their errors: undefined for none
  Flat last_sums_;                     // the errors of summing the gradients themselves, which probes do not see
};

double dot(Part a, Part b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
double norm(Part a) { return std::sqrt(dot(a, a)); }
double ratio(double error, double size) { return error == 0 ? 0 : error / size; }

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
void find_causes(PrecisionReport& report, Rounding& rounding, const Flat& error, const std::vector<Place>& places) {
  const double size = norm(rounding.exact.gradient);
  Flat rest = error;
  for (const std::string& kind : rounding.kinds()) {
    const Flat change = rounding.change(kind);
    rest = combined(std::move(rest), change, std::minus());
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
  const Evaluation &measured = rounding.measured, &exact = rounding.exact;
  const Flat error = combined(measured.gradient, exact.gradient, std::minus());
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
  std::string text = formatted("{:<18}  {:>8}\n{:<18}  {:>8.1e}\n{:<18}  {:>8.1e}    share\n",
                               fmt::format("{} beside f64", braid::name(dtype)), "error", "loss", loss_error,
                               "gradient", relative_error);
  for (const Op& op : ops)
    text += formatted("  {:<16}  {:>8.1e}  {:>5.1f} %\n", op.name, op.relative_error, 100 * op.share);
  text += formatted("  {:<16}  {:>8.1e}\n\n", "remainder", remainder * relative_error);

  std::vector<Row> sorted = rows;
  std::ranges::stable_sort(sorted, precedes, &Row::relative_error);
  sorted.resize(std::min(most_rows, rows.size()));
  std::size_t width = 9;
  for (const Row& row : sorted) width = std::max(width, row.name.size());
  text += fmt::format("{:<{}}  {:>8}  {:>8}  {:>9}  worst op\n", "parameter", width, "gradient", "error", "ulps");
  for (const Row& row : sorted)
    text +=
        formatted("{:<{}}  {:>8.1e}  {:>8.1e}  {:>9.1f}  {}\n", row.name, width, row.gradient, row.relative_error,
                  row.max_ulps, row.worst_op.empty() ? "-" : formatted("{}, {:.0f} %", row.worst_op, 100 * row.share));
  if (sorted.size() < rows.size()) text += fmt::format("{} more with smaller errors\n", rows.size() - sorted.size());
  return text;
}

}  // namespace braid::nn
