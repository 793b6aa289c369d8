#include <braid/mhc/connections/manifold_constrained_hc.h>

#include <cmath>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/core/products/matmul.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <tests/mhc/support.h>

namespace braid::mhc::manifold_constrained_hc_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::ThrowsMessage;

ManifoldConstrainedHC make(std::int64_t channels, std::int64_t streams, Marginal exact = Marginal::rows) {
  Rng rng(2);
  ManifoldConstrainedHC connection(channels, streams, rng, {.mixing_settings = {.exact = exact}, .dtype = DType::f64});
  randomize(connection, rng);
  return connection;
}

TEST(ManifoldConstrainedHC, ComputesItsMapsByTheEquations) {
  Rng rng(1);
  ManifoldConstrainedHC c = make(4, 3);
  c.settings.eps = 0.5;
  const Tensor x = random({3, 4}, rng);
  const std::vector<double> flat = x.to_vector<double>();
  double square = 0;
  for (const double v : flat) square += v * v;
  const double r = std::sqrt(square / 12 + c.settings.eps);
  std::vector<double> h(15);
  for (std::int64_t k = 0; k < 15; ++k) {
    double z = 0;
    for (std::int64_t i = 0; i < 12; ++i) z += flat[static_cast<std::size_t>(i)] * c.phi.value().at({i, k});
    const double alpha = c.alpha.value().at({k < 3 ? 0 : k < 6 ? 1 : 2});
    h[static_cast<std::size_t>(k)] = alpha * z / r + c.bias.value().at({k});
  }
  const StreamMaps maps = c.maps(x);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(maps.h_pre.value().at({i}), 1 / (1 + std::exp(-h[static_cast<std::size_t>(i)])), 1e-14);
    EXPECT_NEAR(maps.h_post.value().at({i}), 2 / (1 + std::exp(-h[static_cast<std::size_t>(3 + i)])), 1e-14);
  }
  const Tensor logits = Tensor::of<double>({3, 3}, {h[6], h[7], h[8], h[9], h[10], h[11], h[12], h[13], h[14]});
  EXPECT_LT(largest_difference(maps.h_res.value(), sinkhorn_knopp(logits, 20, Marginal::rows).value()), 1e-14);
}

TEST(ManifoldConstrainedHC, ExposesItsMapsPerToken) {
  Rng rng(1);
  for (const Marginal exact : {Marginal::rows, Marginal::columns}) {
    const ManifoldConstrainedHC c = make(5, 4, exact);
    const StreamMaps maps = c.maps(random({2, 3, 4, 5}, rng));
    EXPECT_EQ(maps.h_pre.shape(), Shape({2, 3, 4}));
    EXPECT_EQ(maps.h_post.shape(), Shape({2, 3, 4}));
    EXPECT_EQ(maps.h_res.shape(), Shape({2, 3, 4, 4}));
    EXPECT_LT(marginal_error(maps.h_res.value(), exact == Marginal::rows ? -1 : -2), 1e-12);
    EXPECT_THAT(maps.h_pre.value().to_vector<double>(), Each(AllOf(Ge(0.0), Le(1.0))));
    EXPECT_THAT(maps.h_post.value().to_vector<double>(), Each(AllOf(Ge(0.0), Le(2.0))));
  }
}

TEST(ManifoldConstrainedHC, EqualsThePreNormResidualNetworkAtTheStart) {
  Rng rng(1);
  for (const std::int64_t n : {1, 2, 3, 4, 8, 64}) {
    const Tensor x = random({2, 6}, rng);
    Streams streams(expand_streams(x, n));
    Var residual = x;
    for (int depth = 0; depth < 6; ++depth) {
      const TestLayer body(6, rng);
      const auto layer = [&](const Var& h) { return body(rms_norm(h, 1e-5)); };
      const ManifoldConstrainedHC c(6, n, rng, {.dtype = DType::f64});
      streams = c(streams, layer);
      residual = residual + layer(residual);
      EXPECT_LT(largest_difference(c.close(streams).value(), residual.value()), 1e-13) << n << " streams";
    }
  }
  EXPECT_EQ(ManifoldConstrainedHC(6, 4, rng, {.reduction = StreamReduction::sum}).reduction(), StreamReduction::sum);
}

TEST(ManifoldConstrainedHC, TrainsCopiesAsCopiesUnlessPhiSetsThemApart) {
  Rng rng(1);
  const TestLayer layer(6, rng);
  const Tensor x = random({2, 6}, rng), cotangent = random({2, 6}, rng);
  for (const double phi_std : {0.0, 0.02}) {
    const ManifoldConstrainedHC c(6, 2, rng, {.phi_std = phi_std, .dtype = DType::f64});
    const auto step = value_and_grad([&](const auto& m) { return sum(m.close(m(m.open(x), layer)) * cotangent); });
    const Tensor bias = step(c).second.bias.value();
    const double apart = std::abs(bias.at({0}) - bias.at({1}));
    EXPECT_EQ(apart < 1e-15, phi_std == 0) << apart;
  }
}

TEST(ManifoldConstrainedHC, KeepsTheForwardGainOfSixtyComposedMapsAtOne) {
  Rng rng(4);
  Tensor product = eye(4);
  for (int layer = 0; layer < 60; ++layer) {
    ManifoldConstrainedHC c(8, 4, rng);
    for_each_param(c, [&](const std::string&, Var& p) { p = random(p.shape(), rng, 2).to(DType::f32); });
    const Tensor x = random({4, 8}, rng).to(DType::f32);
    product = matrix_product(c.maps(x).h_res.value(), product);
  }
  EXPECT_LT(marginal_error(product, -1), 1e-5);
}

TEST(ManifoldConstrainedHC, PassesGradcheckAroundALayer) {
  Rng rng(3);
  for (const auto& [channels, streams] : {std::pair{3, 2}, {4, 3}, {5, 4}})
    for (const Marginal exact : {Marginal::rows, Marginal::columns})
      expect_right_gradients(make(channels, streams, exact), random({2, streams, channels}, rng), channels);
}

TEST(ManifoldConstrainedHC, PassesGradcheckForOneStreamAndManyChannelsOrTokens) {
  Rng rng(3);
  for (const auto& [lead, n, channels] :
       {std::tuple{Shape{}, 1, 4}, {Shape{}, 4, 3}, {Shape{2, 3}, 2, 1}, {Shape{1}, 5, 17}}) {
    const auto f = [&](std::span<const Var> in) {
      ManifoldConstrainedHC c = make(channels, n);
      c.phi = in[1];
      c.alpha = in[2];
      c.bias = in[3];
      return c(in[0], [](const Var& u) { return tanh(u); });
    };
    const ManifoldConstrainedHC c = make(channels, n);
    const GradcheckResult result =
        gradcheck(f, {random(lead.concat({n, channels}), rng), c.phi.value(), c.alpha.value(), c.bias.value()});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(ManifoldConstrainedHC, SurvivesLogitsOfAThousand) {
  Rng rng(5);
  ManifoldConstrainedHC c(6, 4, rng);
  c.phi = random(c.phi.shape(), rng, 300).to(DType::f32);
  c.alpha = ones({3});
  const Tensor x = random({5, 4, 6}, rng).to(DType::f32);
  const CheckFinite check_finite;
  const auto step = value_and_grad([&](const auto& m) { return sum(m(x, [](const Var& u) { return tanh(u); })); });
  EXPECT_NO_THROW(step(c));
}

TEST(ManifoldConstrainedHC, LetsNaNThroughUnlessChecked) {
  const ManifoldConstrainedHC c = make(3, 2);
  const auto layer = [](const Var& u) { return u; };
  const Tensor x = full({2, 3}, std::nan(""), DType::f64);
  EXPECT_THAT(c(x, layer).value().to_vector<double>(), Each(testing::IsNan()));
  const CheckFinite check_finite;
  EXPECT_THROW(c(x, layer), NonFiniteError);
}

TEST(ManifoldConstrainedHC, NamesItsParameters) {
  const ManifoldConstrainedHC c = make(6, 4);
  EXPECT_THAT(param_names(c), ElementsAre("phi", "alpha", "bias"));
  EXPECT_EQ(c.phi.shape(), Shape({24, 24}));
  EXPECT_EQ(c.alpha.shape(), Shape({3}));
  EXPECT_EQ(c.bias.shape(), Shape({24}));
}

TEST(ManifoldConstrainedHC, RejectsSettingsAndInputsThatDoNotFit) {
  const auto call = [](std::int64_t channels, std::int64_t streams, int iterations, double phi_std = 0) {
    return [=] {
      Rng rng(1);
      ManifoldConstrainedHC(channels, streams, rng,
                            {.mixing_settings = {.iterations = iterations}, .phi_std = phi_std});
    };
  };
  EXPECT_THAT(call(4, 0, 20), ThrowsMessage<ValueError>(HasSubstr("streams must be >= 1 but is 0")));
  EXPECT_THAT(call(0, 4, 20), ThrowsMessage<ValueError>(HasSubstr("channels must be >= 1 but is 0")));
  EXPECT_THAT(call(4, 4, 0), ThrowsMessage<ValueError>(HasSubstr("iterations must be >= 1 but is 0")));
  EXPECT_THAT(call(4, 4, 20, -1), ThrowsMessage<ValueError>(HasSubstr("phi_std must be >= 0 but is -1")));
  const ManifoldConstrainedHC c = make(4, 2);
  EXPECT_THAT(
      [&] {
        c.maps(zeros({3, 4}, DType::f64));
      },
      ThrowsMessage<ShapeError>(
          HasSubstr("ManifoldConstrainedHC: x must have shape [..., 2, 4] (streams, channels) but has [3, 4]")));
  EXPECT_THAT(
      [&] {
        c(zeros({2, 4}, DType::f64), [](const Var&) { return zeros({5}, DType::f64); });
      },
      ThrowsMessage<ShapeError>(HasSubstr("f must have shape [4] to match x [2, 4] but has [5]")));
}

}  // namespace
}  // namespace braid::mhc::manifold_constrained_hc_test
