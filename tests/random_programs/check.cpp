#include <tests/random_programs/check.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <braid/autograd/ops/arithmetic.h>
#include <tests/support.h>

namespace braid::programs {
namespace {

constexpr double kRounding = std::numeric_limits<float>::epsilon();
constexpr double kNoise = 4 * kRounding;  // of one disturbed run
constexpr double kAllowed = 8;            // times what disturbed runs move
constexpr std::uint64_t kMoreRuns = 64;   // before a difference counts as one

double largest(const Tensor& x) {
  if (!x.defined()) return 0;
  double size = 0;
  for (const double v : x.to_vector<double>()) size = std::max(size, std::abs(v));
  return size;
}

bool is_finite(const Tensor& x) {
  return std::ranges::all_of(x.to_vector<double>(), [](double v) { return std::isfinite(v); });
}

Tensor signs(const Shape& shape, DType dtype) {
  Tensor dy(shape, DType::f64);
  Rng rng(1);
  for (std::int64_t i = 0; i < dy.numel(); ++i) dy.mutable_data<double>()[i] = rng.below(2) == 0 ? -1 : 1;
  return dy.to(dtype);
}

/// Makes errors as large as rounding to f32 leaves, relative to the largest number that an op read or made: small
/// results may be what is left of large terms.
class Noise : public Probe {
 public:
  explicit Noise(std::uint64_t seed) : rng_(seed) {}

  void recorded(const RecordedOp&, std::span<const Var> inputs, std::vector<Tensor>& outputs) override {
    double terms = 0;
    for (const Var& x : inputs) terms = std::max(terms, largest(x.value()));
    for (Tensor& y : outputs) y = disturbed(y, terms);
  }
  void propagates(const RecordedOp&, std::span<Tensor> dys) override {
    terms_ = 0;
    for (Tensor& dy : dys) {
      dy = disturbed(dy, 0);
      terms_ = std::max(terms_, largest(dy));
    }
  }
  void propagated(const RecordedOp&, std::vector<Tensor>& dxs) override {
    for (Tensor& dx : dxs) dx = disturbed(dx, terms_);
  }

 private:
  Tensor disturbed(const Tensor& x, double terms) {
    if (!x.defined() || x.numel() == 0) return x;
    const double size = kNoise * std::max(largest(x), terms);
    const std::vector<double> from = x.to_vector<double>();
    Tensor y = rand(x.shape(), rng_, DType::f64);
    double* out = y.mutable_data<double>();
    for (std::size_t i = 0; i < from.size(); ++i) out[i] = from[i] + size * (2 * out[i] - 1);
    return y.to(x.dtype());
  }

  Rng rng_;
  double terms_ = 0;
};

/// Moved off a kink, where values are equal: there the derivative of what chooses among them may be smooth along a line
/// and not be the product with any gradient, as that of the median of (a, b, 0) at 0.
std::vector<Tensor> in_general_position(const std::vector<Tensor>& inputs) {
  Rng rng(1);
  std::vector<Tensor> moved;
  for (const Tensor& x : inputs) moved.push_back(x * (1 + 1e-3 * rand(x.shape(), rng, DType::f64)));
  return moved;
}

GradcheckFunction function_of(const Program& program) {
  return [&program](std::span<const Var> inputs) { return result_of(program, inputs); };
}

template <class F>
std::optional<Failure> unless_thrown(F check) {
  try {
    return check();
  } catch (const std::exception& error) {
    return Failure{Fault::error, error.what()};
  }
}

std::optional<Failure> check_derivatives(const Program& program, int order) {
  auto failure = unless_thrown([&] {
    return check_gradients(
        function_of(program), inputs_of(program),
        {.max_elements = 6, .directions = 3, .blame = false, .order = order, .by = GradcheckOptions::By::rules});
  });
  if (failure) failure->fault = Fault::rules;
  return failure;
}

}  // namespace

std::vector<Tensor> value_and_gradients(const GradcheckFunction& f, const std::vector<Tensor>& inputs, Probe* probe) {
  Tape tape(probe);
  std::vector<Var> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  const Var y = f(watched);
  tape.backward(y, signs(y.shape(), y.dtype()));
  std::vector<Tensor> results{y.value()};
  for (const Var& input : watched) results.push_back(tape.gradient(input));
  return results;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  check_shape(a.shape() == b.shape(), "largest_difference: shapes are {} and {}", a.shape(), b.shape());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::abs(x[i] - y[i]);
    worst = std::isfinite(difference) ? std::max(worst, difference) : std::numeric_limits<double>::infinity();
  }
  return worst;
}

std::optional<Failure> check_single(const GradcheckFunction& f, const std::vector<Tensor>& f32_inputs,
                                    const std::vector<Tensor>& f64_inputs) {
  const auto single = value_and_gradients(f, f32_inputs), exact = value_and_gradients(f, f64_inputs);
  std::vector<double> moved(exact.size());
  std::uint64_t runs = 0;
  const auto disturb = [&](const std::vector<Tensor>& inputs, const std::vector<Tensor>& undisturbed) {
    Noise noise(runs);
    const auto results = value_and_gradients(f, inputs, &noise);
    for (std::size_t i = 0; i < exact.size(); ++i)
      if (is_finite(undisturbed[i])) moved[i] = std::max(moved[i], largest_difference(results[i], undisturbed[i]));
  };
  const auto worst_after = [&](std::uint64_t wanted) -> std::optional<Failure> {
    for (; runs < wanted; ++runs) {
      disturb(f64_inputs, exact);
      if (wanted > 1) disturb(f32_inputs, single);  // whose rounding inside of ops varies as well
    }
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double error = largest_difference(single[i], exact[i]);
      const double allowed = kAllowed * (moved[i] + kRounding * largest(exact[i]));
      if (error <= allowed) continue;
      return Failure{Fault::single,
                     fmt::format("result {} in f32 is off by {:.3g} where rounding explains {:.3g}", i, error, allowed),
                     i, allowed};
    }
    return std::nullopt;
  };
  const auto first = worst_after(1);
  return first ? worst_after(kMoreRuns) : first;
}

std::optional<Failure> check_gradients(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                                       const GradcheckOptions& options, const std::vector<std::string>& names) {
  GradcheckResult result = gradcheck(f, inputs, options, names);
  if (result.wrong > 0 && result.kinks > 0) result = gradcheck(f, in_general_position(inputs), options, names);
  if (result || (result.wrong == 0 && result.unchecked > 0)) return std::nullopt;  // random programs may be that rough
  return Failure{Fault::gradient, result.message};
}

std::optional<Failure> check_program(const Program& program) {
  return unless_thrown([&]() -> std::optional<Failure> {
    const GradcheckFunction f = function_of(program);
    const std::vector<Tensor> inputs = inputs_of(program);
    if (auto failure = check_single(f, inputs_of(program, DType::f32), inputs)) return failure;
    return check_gradients(f, inputs, {.max_elements = 6, .directions = 3, .blame = false});
  });
}

std::optional<Failure> check_rules(const Program& program) { return check_derivatives(program, 1); }
std::optional<Failure> check_second_order(const Program& program) { return check_derivatives(program, 2); }

std::optional<Failure> check_bits(const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
  const auto expected = value_and_gradients(f, inputs);
  for (const int threads : {1, 3}) {
    const WithThreads on(threads);
    const auto again = value_and_gradients(f, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!identical(again[i], expected[i]))
        return Failure{Fault::bits, fmt::format("result {} has other bits on {} threads", i, threads), i};
  }
  return std::nullopt;
}

std::optional<Failure> check_bits(const Program& program) {
  return unless_thrown([&]() -> std::optional<Failure> {
    for (const DType dtype : {DType::f32, DType::f64})
      if (auto failure = check_bits(function_of(program), inputs_of(program, dtype))) return failure;
    return std::nullopt;
  });
}

}  // namespace braid::programs
