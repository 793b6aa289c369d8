#include <braid/mhc/connections/manifold_hyper_connection.h>

#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/ops/sinkhorn.h>
#include <braid/nn/init.h>
#include <tests/mhc/support.h>

namespace braid::mhc::manifold_hyper_connection_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::ThrowsMessage;

ManifoldHyperConnection make(std::int64_t dims, std::int64_t expansion, std::uint64_t seed = 1) {
  Rng rng(seed);
  ManifoldHyperConnection connection(dims, rng, {.expansion = expansion, .dtype = DType::f64});
  randomize(connection, rng, 1);
  return connection;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// post_combine by the formula, one number at a time.
Tensor naive_post_combine(const ManifoldHyperConnection& c, const Tensor& x, const Tensor& f) {
  const std::int64_t e = c.expansion(), width = c.dims / e, tokens = x.numel() / c.dims;
  const Tensor h_res = c.h_res().value();
  std::vector<double> xs = x.to_vector<double>(), fs = f.to_vector<double>(), y(xs.size());
  const auto sum_at = [](const Var& a, const Var& b, std::int64_t i) { return a.value().at({i}) + b.value().at({i}); };
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t i = 0; i < e; ++i)
      for (std::int64_t d = 0; d < width; ++d) {
        const auto at = [&](std::int64_t group) { return static_cast<std::size_t>(t * c.dims + group * width + d); };
        double mixed = fs[at(i)];
        for (std::int64_t j = 0; j < e; ++j)
          mixed += h_res.at({i, j}) * sigmoid_of(sum_at(c.h_pre_raw, c.h_pre_bias, j)) * xs[at(j)];
        y[at(i)] = 2 * sigmoid_of(sum_at(c.h_post_raw, c.h_post_bias, i)) * mixed;
      }
  return Tensor::of<double>(x.shape(), y);
}

TEST(ManifoldHyperConnection, FollowsItsEquations) {
  Rng rng(3);
  for (const std::int64_t expansion : {1, 2, 4, 8}) {
    const ManifoldHyperConnection c = make(24, expansion);
    const Tensor x = random({2, 3, 24}, rng), f = random({2, 3, 24}, rng);
    EXPECT_LT(largest_difference(c.post_combine(x, f).value(), naive_post_combine(c, x, f)), 1e-14);
    const Tensor scaled = c.pre_scale(x).value();
    for (std::int64_t d = 0; d < 24; ++d)
      EXPECT_NEAR(scaled.at({1, 2, d}), x.at({1, 2, d}) * c.h_pre().value().at({d / (24 / expansion)}), 1e-15);
  }
}

TEST(ManifoldHyperConnection, KeepsTheShapeForAnyLeadingAxes) {
  Rng rng(3);
  for (const std::int64_t expansion : {1, 2, 4, 8}) {
    const ManifoldHyperConnection c = make(16, expansion);
    for (const Shape& lead : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{2, 1, 3}}) {
      const Tensor x = random(lead.concat({16}), rng);
      EXPECT_EQ(c.pre_scale(x).shape(), x.shape());
      EXPECT_EQ(c.post_combine(x, x).shape(), x.shape());
    }
  }
}

TEST(ManifoldHyperConnection, HasADoublyStochasticMixAndGatesInRange) {
  for (const std::int64_t expansion : {1, 2, 4, 8}) {
    const ManifoldHyperConnection c = make(16, expansion);
    EXPECT_EQ(c.h_res().shape(), Shape({expansion, expansion}));
    EXPECT_LT(marginal_error(c.h_res().value(), -2), 1e-12);  // the exact one
    EXPECT_LT(marginal_error(c.h_res().value(), -1), 1e-2);   // the other, truncated
    EXPECT_THAT(c.h_res().value().to_vector<double>(), Each(AllOf(Gt(0.0), Lt(1.0 + 1e-12))));
    EXPECT_THAT(c.h_pre().value().to_vector<double>(), Each(AllOf(Gt(0.0), Lt(1.0))));
    EXPECT_THAT(c.h_post().value().to_vector<double>(), Each(AllOf(Gt(0.0), Lt(2.0))));
  }
}

TEST(ManifoldHyperConnection, StartsWithHalfAndOneAndScaledNormalLogits) {
  Rng rng(1);
  const ManifoldHyperConnection c(1024, rng, {.expansion = 64});
  EXPECT_THAT(c.h_pre().value().to_vector<double>(), Each(0.5));
  EXPECT_THAT(c.h_post().value().to_vector<double>(), Each(1.0));
  double square = 0;
  for (const double v : c.h_res_raw.value().to_vector<double>()) square += v * v;
  EXPECT_NEAR(square / (64 * 64), 1.0 / 64, 0.1 / 64);
  EXPECT_EQ(ManifoldHyperConnection(8, rng).expansion(), 2);
  EXPECT_EQ(ManifoldHyperConnection(8, rng).sinkhorn_iterations, 20);
}

TEST(ManifoldHyperConnection, HalvesTheResidualAtTheStart) {
  Rng rng(1);
  const ManifoldHyperConnection c(8, rng, {.dtype = DType::f64});
  const Tensor x = ones({8}, DType::f64);  // equal groups, so that any doubly stochastic mix keeps them
  EXPECT_LT(largest_difference(c.post_combine(x, zeros({8}, DType::f64)).value(), full({8}, 0.5, DType::f64)), 1e-3);
}

TEST(ManifoldHyperConnection, ActsAsTwoStagesAroundACallable) {
  Rng rng(2);
  const ManifoldHyperConnection c = make(8, 2);
  const Tensor x = random({2, 3, 8}, rng);
  const TestLayer layer(8, rng);
  EXPECT_TRUE(identical(c(x, layer).value(), c.post_combine(x, layer(c.pre_scale(x))).value()));
}

TEST(ManifoldHyperConnection, GivesAnotherResultWhenCalledTheLegacyWay) {
  Rng rng(2);
  const ManifoldHyperConnection c = make(8, 2);
  const Tensor x = random({2, 3, 8}, rng);
  const TestLayer layer(8, rng);
  EXPECT_TRUE(identical(c(x, layer(x)).value(), c.post_combine(x, layer(x)).value()));
  EXPECT_GT(largest_difference(c(x, layer(x)).value(), c(x, layer).value()), 1e-3);
}

TEST(ManifoldHyperConnection, NamesItsParameters) {
  EXPECT_THAT(param_names(make(8, 2)),
              ElementsAre("h_res_raw", "h_pre_raw", "h_pre_bias", "h_post_raw", "h_post_bias"));
}

TEST(ManifoldHyperConnection, PassesGradcheckAroundALayer) {
  Rng rng(5);
  for (const auto& [dims, expansion] : {std::pair{6, 2}, {8, 4}, {7, 7}})
    expect_right_gradients(make(dims, expansion), random({2, 3, dims}, rng), dims);
}

TEST(ManifoldHyperConnection, PassesGradcheckForOneGroup) {
  Rng rng(5);
  const Tensor x = random({3, 5}, rng);
  const GradcheckResult result =
      gradcheck_module(make(5, 1), [&](const auto& c) { return c(x, [](const Var& h) { return tanh(h); }); });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(ManifoldHyperConnection, ReusesItsMapsInEvaluation) {
  const ManifoldHyperConnection c = make(8, 2);
  const auto storage = [](const Var& v) { return v.value().data<double>(); };
  const Var h_res = c.h_res(), h_pre = c.h_pre(), h_post = c.h_post();
  EXPECT_EQ(storage(c.h_res()), storage(h_res));
  EXPECT_EQ(storage(c.h_pre()), storage(h_pre));
  EXPECT_EQ(storage(c.h_post()), storage(h_post));
}

TEST(ManifoldHyperConnection, ComputesItsMapsAnewAfterAParameterChanges) {
  ManifoldHyperConnection c = make(8, 2);
  const Tensor before = c.h_res().value().clone();
  c.h_res_raw.mutable_value().mutable_data<double>()[0] += 1;  // in place, as optimizers do
  EXPECT_GT(largest_difference(c.h_res().value(), before), 1e-3);
  c.h_pre_bias = full({2}, 3, DType::f64);  // another tensor
  c.h_pre_raw = zeros({2}, DType::f64);
  EXPECT_NEAR(c.h_pre().value().at({0}), sigmoid_of(3), 1e-15);
}

TEST(ManifoldHyperConnection, ComputesItsMapsOnTheTapeInTraining) {
  const ManifoldHyperConnection c = make(8, 2);
  const Tensor x = ones({3, 8}, DType::f64);
  c.post_combine(x, x);  // fills the cache
  const auto step = value_and_grad([&](const ManifoldHyperConnection& m) { return sum(m.post_combine(x, x)); });
  const auto first = step(c).second, second = step(c).second;
  EXPECT_GT(largest_difference(first.h_pre_raw.value(), zeros({2}, DType::f64)), 1e-3);
  EXPECT_TRUE(identical(first.h_pre_raw.value(), second.h_pre_raw.value()));
}

TEST(ManifoldHyperConnection, KeepsItsCacheToItselfWhenCopied) {
  const ManifoldHyperConnection c = make(8, 2);
  const Tensor before = c.h_res().value();
  ManifoldHyperConnection copy = c;
  copy.h_res_raw = zeros({2, 2}, DType::f64);
  EXPECT_THAT(copy.h_res().value().to_vector<double>(), Each(0.5));
  EXPECT_TRUE(identical(c.h_res().value(), before));
  copy = c;
  EXPECT_TRUE(identical(copy.h_res().value(), before));
  copy.sinkhorn_iterations = 1;
  EXPECT_TRUE(identical(copy.h_res().value(), sinkhorn_knopp(c.h_res_raw, 1, Marginal::columns).value()));
}

TEST(ManifoldHyperConnection, RejectsSettingsThatDoNotFit) {
  Rng rng(1);
  const auto call = [&](std::int64_t dims, std::int64_t expansion, int iterations) {
    return [=] {
      Rng r(1);
      ManifoldHyperConnection(dims, r, {.expansion = expansion, .sinkhorn_iterations = iterations});
    };
  };
  EXPECT_THAT(call(10, 4, 20),
              ThrowsMessage<ValueError>(
                  HasSubstr("ManifoldHyperConnection: dims must be a positive multiple of expansion 4 but is 10")));
  EXPECT_THAT(call(0, 2, 20), ThrowsMessage<ValueError>(HasSubstr("expansion 2 but is 0")));
  EXPECT_THAT(call(8, 0, 20), ThrowsMessage<ValueError>(HasSubstr("expansion must be >= 1 but is 0")));
  EXPECT_THAT(call(8, 2, 0), ThrowsMessage<ValueError>(HasSubstr("sinkhorn_iterations must be >= 1 but is 0")));
}

TEST(ManifoldHyperConnection, RejectsInputsOfOtherWidths) {
  const ManifoldHyperConnection c = make(8, 2);
  const Tensor x = zeros({2, 8}, DType::f64), narrow = zeros({2, 6}, DType::f64);
  EXPECT_THAT([&] { c.pre_scale(narrow); },
              ThrowsMessage<ShapeError>(HasSubstr("x must have shape [..., 8] but has [2, 6]")));
  EXPECT_THAT([&] { c.post_combine(x, narrow); },
              ThrowsMessage<ShapeError>(HasSubstr("layer_output must have the shape [2, 8] of x but has [2, 6]")));
}

}  // namespace
}  // namespace braid::mhc::manifold_hyper_connection_test
