// Errors of elementary functions in units in the last place: those of f32 at every 61st float against the C library in
// f64, those of f64 at random numbers against it in long double. Results that are not normal do not count. Prints the
// table of docs/precision.md.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <vector>

#include <braid/autograd/ops.h>
#include <fmt/format.h>

#include <apps/common/run_main.h>

namespace braid::bench {
namespace {

struct Function {
  const char* name;
  Var (*op)(const Var&);
  double (*in_f64)(double);
  long double (*in_long_double)(long double);
};

template <class F>
Function function(const char* name, Var (*op)(const Var&), F) {
  return {name, op, [](double x) { return F{}(x); }, [](long double x) { return F{}(x); }};
}

constexpr auto kSigmoid = [](auto x) {
  const auto small = std::exp(-std::abs(x));
  return (x < 0 ? small : 1) / (1 + small);
};
constexpr auto kSoftplus = [](auto x) { return std::fmax(x, decltype(x){0}) + std::log1p(std::exp(-std::abs(x))); };
constexpr auto kGelu = [](auto given) {
  const long double x = given, scale = 2 * std::numbers::sqrt2_v<long double> * std::numbers::inv_sqrtpi_v<long double>;
  return static_cast<decltype(given)>(x * kSigmoid(scale * (x + 0.044715L * x * x * x)));
};
constexpr auto kGeluErf = [](auto x) {
  const long double z = -x / std::numbers::sqrt2_v<long double>;
  return static_cast<decltype(x)>(x * std::erfc(z) / 2);
};

const std::vector<Function> kFunctions{
    function("exp", exp, [](auto x) { return std::exp(x); }),
    function("expm1", expm1, [](auto x) { return std::expm1(x); }),
    function("log", log, [](auto x) { return std::log(x); }),
    function("log1p", log1p, [](auto x) { return std::log1p(x); }),
    function("sin", sin, [](auto x) { return std::sin(x); }),
    function("cos", cos, [](auto x) { return std::cos(x); }),
    function("tanh", tanh, [](auto x) { return std::tanh(x); }),
    function("sigmoid", sigmoid, kSigmoid),
    function("softplus", softplus, kSoftplus),
    function("silu", silu, [](auto x) { return x * kSigmoid(x); }),
    function("gelu", gelu, kGelu),
    function("gelu_erf", gelu_erf, kGeluErf),
};

struct Errors {
  double worst = 0, sum = 0;
  std::int64_t count = 0;

  template <class T, class Exact>
  void add(std::span<const T> x, std::span<const T> y, Exact (*reference)(Exact)) {
    using Limits = std::numeric_limits<T>;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Exact exact = reference(static_cast<Exact>(x[i]));
      if (!(std::abs(exact) >= Limits::min() && std::abs(exact) < Limits::max() * (1 - Limits::epsilon()))) continue;
      const Exact ulp = std::ldexp(Exact{1}, std::ilogb(exact) + 1 - Limits::digits);
      const auto error = static_cast<double>(std::abs(y[i] - exact) / ulp);
      worst = error <= worst ? worst : error;  // NaN is worse than all
      sum += error;
      ++count;
    }
  }
};

template <class T, class Exact>
void measure(Errors& errors, const std::vector<T>& x, const Function& f, Exact (*reference)(Exact)) {
  const Tensor y = f.op(Tensor::of<T>({static_cast<std::int64_t>(x.size())}, std::span(x))).value();
  errors.add<T, Exact>(x, {y.data<T>(), x.size()}, reference);
}

Errors in_f32(const Function& f) {
  constexpr std::uint64_t kStep = 61, kChunk = kStep << 18;
  Errors errors;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += kChunk) {
    std::vector<float> x;
    for (std::uint64_t bits = first; bits < std::min(first + kChunk, std::uint64_t{1} << 32); bits += kStep)
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    measure(errors, x, f, f.in_f64);
  }
  return errors;
}

/// Half of the numbers are spread evenly up to 40, half in their exponents.
Errors in_f64(const Function& f) {
  Errors errors;
  std::mt19937_64 bits(1);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * 0x1p-64 * static_cast<double>(bits());
  };
  for (int chunk = 0; chunk < 64; ++chunk) {
    std::vector<double> x(1 << 16);
    for (double& v : x)
      v = bits() % 2 == 0 ? uniform(-40, 40) : std::copysign(std::exp2(uniform(-40, 10)), uniform(-1, 1));
    measure(errors, x, f, f.in_long_double);
  }
  return errors;
}

void print_row(const Function& f) {
  const Errors single = in_f32(f), twice = in_f64(f);
  const auto mean = [](const Errors& e) { return e.sum / static_cast<double>(e.count); };
  fmt::print("| `{}` | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", f.name, single.worst, mean(single), twice.worst,
             mean(twice));
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  return braid::apps::run_main("ulp", "The errors of elementary functions, as a table", argc, argv, [] {
    fmt::print("| | f32: worst | mean | f64: worst | mean |\n|---|---|---|---|---|\n");
    for (const braid::bench::Function& f : braid::bench::kFunctions) braid::bench::print_row(f);
  });
}
