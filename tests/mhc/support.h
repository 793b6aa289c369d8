#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <braid/autograd/composed.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>
#include <braid/core/reduce.h>

namespace braid::mhc {

/// While one is alive, connections run fused, or in their composed forms.
struct Form {
  std::optional<Composed> scope;

  explicit Form(bool composed) {
    if (composed) scope.emplace(Composed::Ops::connections);
  }
};

/// N(0, scale^2) in f64.
inline Tensor random(const Shape& shape, Rng& rng, double scale = 1) {
  return (Var(randn(shape, rng, DType::f64)) * scale).value();
}

/// max |a - b|; infinite where the difference is NaN, which no bound may let pass.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::isnan(x[i] - y[i]) ? INFINITY : std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

/// The largest deviation from 1 of the sums along an axis.
inline double marginal_error(const Tensor& p, int axis) {
  const Tensor sums = reduce_sum(p, {axis});
  return largest_difference(sums, ones(sums.shape(), sums.dtype()));
}

/// Gives every parameter random f64 values, so that no gradient vanishes by a zero at the start.
template <Parametric M>
void randomize(M& module, Rng& rng, double scale = 0.5) {
  for_each_param(module, [&](const std::string&, Var& p) { p = random(p.shape(), rng, scale); });
}

template <Parametric M>
std::vector<std::string> param_names(const M& module) {
  std::vector<std::string> names;
  for_each_param(module, [&](const std::string& name, const Var&) { names.push_back(name); });
  return names;
}

/// The layer F of the tests: a small MLP, C -> 5 -> C.
struct TestLayer {
  Var up, down;  // [5, C], [C, 5]

  TestLayer(std::int64_t channels, Rng& rng) : up(random({5, channels}, rng)), down(random({channels, 5}, rng)) {}

  Var operator()(const Var& x) const { return linear(tanh(linear(x, up)), down); }

  void params(auto&& visit) {
    visit("up", up);
    visit("down", down);
  }
};

/// A connection around a layer, with the input as a parameter: everything that has a gradient.
template <class Connection>
struct WholeLayer {
  Var x;
  Connection connection;
  TestLayer layer;

  Var operator()() const { return connection(x, layer); }

  void params(auto&& visit) {
    visit("x", x);
    visit("connection", connection);
    visit("layer", layer);
  }
};

/// Gradchecks connection(x, layer) for x, every parameter of the connection and every parameter of an MLP as layer, and
/// expects that each gets a gradient.
template <class Connection>
void expect_right_gradients(const Connection& connection, const Tensor& x, std::int64_t channels) {
  Rng rng(7);
  const WholeLayer<Connection> whole{x, connection, TestLayer(channels, rng)};
  const GradcheckResult result =
      gradcheck_module(whole, [](const auto& w) { return w(); }, {.order = 2, .by = GradcheckOptions::By::both});
  EXPECT_TRUE(result.ok) << result.message;

  const Tensor cotangent = random(whole().shape(), rng);
  const auto step = value_and_grad([&](const auto& w) { return sum(w() * cotangent); });
  for_each_param(step(whole).second, [](const std::string& name, const Var& grad) {
    EXPECT_GT(largest_difference(grad.value(), zeros(grad.shape(), DType::f64)), 1e-9) << name << " gets no gradient";
  });
}

}  // namespace braid::mhc
