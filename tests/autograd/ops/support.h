#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <braid/autograd/gradcheck.h>
#include <braid/core/random.h>
#include <braid/core/tensor.h>

namespace braid::testing {

/// Standard normal numbers; `seed` tells them apart.
inline Tensor normal(const Shape& shape, std::uint64_t seed = 0, DType dtype = DType::f64) {
  Rng rng(seed);
  return randn(shape, rng, dtype);
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
  for (std::size_t i = 0; i < e.size(); ++i)
    ASSERT_NEAR(a[i], e[i], tolerance * std::max(1.0, std::abs(e[i]))) << "at element " << i;
}

inline void expect_values(const Var& actual, const Shape& shape, const std::vector<double>& expected,
                          double tolerance = 1e-12) {
  expect_close(actual.value(), Tensor::of<double>(shape, std::span(expected)), tolerance);
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

}  // namespace braid::testing
