#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <braid/autograd/composed.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/map.h>
#include <braid/core/random.h>
#include <braid/core/tensor.h>
#include <tests/support.h>

namespace braid::op_tests {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Standard normal numbers; other ones for another `seed`.
inline Tensor normal(const Shape& shape, std::uint64_t seed = 0, DType dtype = DType::f64) {
  Rng rng(seed);
  return randn(shape, rng, compute_dtype(dtype)).to(dtype);
}

inline Tensor f64(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::of<double>(shape, values);
}

inline Tensor i32(const Shape& shape, std::initializer_list<std::int32_t> values) {
  return Tensor::of<std::int32_t>(shape, values);
}

/// Equal shapes, and elements equal within `tolerance` relative to the larger of 1 and the expected one.
inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance = 1e-12) {
  ASSERT_EQ(actual.shape(), expected.shape());
  const std::vector<double> a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (a[i] == e[i]) continue;  // infinities have no difference
    ASSERT_NEAR(a[i], e[i], tolerance * std::max(1.0, std::abs(e[i]))) << "at element " << i;
  }
}

inline void expect_values(const Var& actual, const Shape& shape, const std::vector<double>& expected,
                          double tolerance = 1e-12) {
  expect_close(actual.value(), Tensor::of<double>(shape, std::span(expected)), tolerance);
}

/// `op(x)` is `reference(x)` for every element, in f64 and f32, for sizes that do and do not fill vectors, and for a
/// strided x. Arguments lie in (low, high).
inline void expect_elementwise(Var (*op)(const Var&), double (*reference)(double), double low = -6, double high = 6) {
  for (const DType dtype : {DType::f64, DType::f32})
    for (const std::int64_t n : {0, 1, 7, 64, 1003}) {
      Rng rng(static_cast<std::uint64_t>(n));
      const Tensor x = map(
          "scale", [=](auto u) { return static_cast<decltype(u)>(low + (high - low) * u); }, rand({3, n}, rng, dtype));
      const Tensor expected = map(
          "reference", [=](auto v) { return static_cast<decltype(v)>(reference(v)); }, x);
      const double tolerance = dtype == DType::f64 ? 1e-14 : 5e-7;
      expect_close(op(x).value(), expected, tolerance);
      expect_close(op(x.transpose()).value(), expected.transpose(), tolerance);
    }
}

/// `op(x)` in f64 is `reference(x)` to all but the last bits, however small that is.
inline void expect_relatively_close(Var (*op)(const Var&), double (*reference)(double), double x) {
  const double expected = reference(x);
  EXPECT_NEAR(op(scalar(x, DType::f64)).item(), expected, 2e-15 * std::abs(expected)) << "at " << x;
}

/// `op(x)` and the gradient there, for a cotangent of one.
inline std::pair<double, double> value_and_slope(const std::function<Var(const Var&)>& op, double at,
                                                 DType dtype = DType::f64) {
  Tape tape;
  const Var x = tape.watch(scalar(at, dtype)), y = op(x);
  tape.backward(y);
  return {y.item(), tape.gradient(x).item()};
}

/// f(inputs) passes gradcheck.
inline void expect_gradients(const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult result = gradcheck(f, inputs);
  EXPECT_TRUE(result) << result.message;
}

/// The cotangents of the inputs of f for the cotangent dy.
inline std::vector<Tensor> gradients(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy) {
  Tape tape;
  std::vector<Var> x;
  for (const Tensor& input : inputs) x.push_back(tape.watch(input));
  tape.backward(f(x), dy);
  std::vector<Tensor> grads;
  for (const Var& v : x) grads.push_back(tape.gradient(v));
  return grads;
}

/// f(inputs) agrees with its composed form to `tolerance`, and the gradients of its inputs to ten times as much.
inline void expect_composed_form(const GradcheckFunction& f, const std::vector<Tensor>& inputs, double tolerance) {
  const std::vector<Var> constants(inputs.begin(), inputs.end());
  const Tensor y = f(constants).value(), dy = normal(y.shape(), 4, y.dtype());
  const std::vector<Tensor> actual = gradients(f, inputs, dy);
  const Composed composed;
  expect_close(y, f(constants).value(), tolerance);
  const std::vector<Tensor> expected = gradients(f, inputs, dy);
  for (std::size_t i = 0; i < inputs.size(); ++i) expect_close(actual[i], expected[i], 10 * tolerance);
}

/// The gradients of f and its value are the same bits on 1, 2 and 3 threads.
inline void expect_same_bits_on_any_threads(const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
  const auto run = [&](int threads) {
    const WithThreads with_threads(threads);
    const std::vector<Var> constants(inputs.begin(), inputs.end());
    const Tensor y = f(constants).value();
    std::vector<Tensor> results = gradients(f, inputs, normal(y.shape(), 99, y.dtype()));
    results.push_back(y);
    return results;
  };
  const std::vector<Tensor> expected = run(1);
  for (const int threads : {2, 3}) {
    const std::vector<Tensor> results = run(threads);
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(identical(results[i], expected[i])) << "result " << i;
  }
}

}  // namespace braid::op_tests
