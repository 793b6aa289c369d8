#include <braid/nn/verify/detail/op_rounding.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include <braid/autograd/verify/detail/differences.h>
#include <braid/core/map.h>

namespace braid::nn::detail {
namespace {

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

std::vector<double> differences(const std::vector<double>& low, const std::vector<double>& high) {
  std::vector<double> result(low.size());
  std::ranges::transform(low, high, result.begin(), kDifference);
  return result;
}

}  // namespace

Rounding::Rounding(LossFunction loss, const std::vector<Tensor>& low) : loss_(std::move(loss)) {
  Recording recording(/*opens_checkpoints=*/true);
  measured_ = evaluate(loss_, low, &recording);
  traces_ = std::move(recording.ops);
  const Tensor again = loss_(std::vector<Var>(low.begin(), low.end()), low.front().dtype()).value();
  check<Error>(identical(measured_.loss, again), "precision_report: the loss is not deterministic: {} and then {}",
               measured_.loss.item(), again.item());
  for (const Tensor& param : low) params_.push_back(param.to(DType::f64));
  exact_ = evaluate(loss_, params_);
  Follow comparison(traces_, compare);
  const Evaluation compared = evaluate(loss_, params_, &comparison);
  comparison.check_complete();
  last_sums_ = differences(measured_.gradient, compared.gradient);
}

std::vector<std::string> Rounding::kinds() const {
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

std::vector<double> Rounding::change(const std::string& kind) {
  const auto add_errors = [&](std::string_view op, std::vector<Tensor>& errors, std::span<Tensor> results) {
    if (op != kind) return;
    for (std::size_t i = 0; i < errors.size(); ++i)
      if (errors[i].defined() && results[i].defined())
        results[i] = map("precision_report", std::plus(), results[i], errors[i].to(results[i].dtype()));
  };
  Follow inject(traces_, add_errors);
  std::vector<double> gradient = evaluate(loss_, params_, &inject).gradient;
  if (kind == kAccumulate) std::ranges::transform(gradient, last_sums_, gradient.begin(), std::plus());
  return differences(gradient, exact_.gradient);
}

}  // namespace braid::nn::detail
