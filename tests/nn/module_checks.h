#pragma once
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>

namespace braid::nn {

template <Parametric M>
std::vector<std::string> parameter_names(const M& module) {
  std::vector<std::string> names;
  for_each_param(module, [&](const std::string& name, const Var&) { names.push_back(name); });
  return names;
}

inline void expect_close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_THAT(a.to_vector<double>(), testing::Pointwise(testing::DoubleNear(tolerance), b.to_vector<double>()));
}

/// A forgotten parameter would be silently frozen: each must get a gradient, and the right one.
/// `f(module)` is a Var of any shape and of dtype f64.
template <Parametric M, class F>
void expect_gradients(const M& module, const F& f) {
  Rng rng(99);
  const Tensor weights = randn(f(module).shape(), rng, DType::f64);
  const auto [loss, grads] = value_and_grad([&](const M& m) { return sum(f(m) * weights); })(module);
  for_each_param(grads, [](const std::string& name, const Var& grad) {
    const auto values = grad.value().template to_vector<double>();
    EXPECT_TRUE(std::ranges::any_of(values, [](double g) { return g != 0; })) << name << " has no gradient";
  });
  const GradcheckResult result = gradcheck_module(module, f, {.order = 2, .by = GradcheckOptions::By::both});
  EXPECT_TRUE(result.ok) << result.message;
}

/// Runs f, which must throw E with this message.
template <class E, class F>
void expect_error(F&& f, const std::string& message) {
  try {
    f();
    ADD_FAILURE() << "no error, expected: " << message;
  } catch (const E& e) {
    EXPECT_EQ(std::string(e.what()), message);
  }
}

}  // namespace braid::nn
