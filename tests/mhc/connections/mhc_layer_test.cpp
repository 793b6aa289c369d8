#include <braid/mhc/connections/mhc_layer.h>

#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/ops/mhc_layer.h>
#include <tests/mhc/support.h>

namespace braid::mhc::mhc_layer_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

MHCLayer make(std::int64_t streams, std::int64_t channels) {
  Rng rng(2);
  MHCLayer layer(streams, channels, {.dtype = DType::f64});
  randomize(layer, rng, 1);
  return layer;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

TEST(MHCLayer, FollowsItsEquations) {
  Rng rng(1);
  const MHCLayer layer = make(3, 4);
  const Tensor x = random({2, 3, 4}, rng), out = layer(x).value(), m = layer.mixing_matrix().value();
  for (std::int64_t b = 0; b < 2; ++b) {
    std::vector<double> aggregate(4, 0.0);
    double square = 0;
    for (std::int64_t c = 0; c < 4; ++c) {
      double& a = aggregate[static_cast<std::size_t>(c)];
      for (std::int64_t i = 0; i < 3; ++i) a += sigmoid_of(layer.h_pre_raw.value().at({i})) * x.at({b, i, c});
      square += a * a;
    }
    const double rms = std::sqrt(square / 4 + layer.settings.eps);
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t c = 0; c < 4; ++c) {
        double expected = 2 * sigmoid_of(layer.h_post_raw.value().at({i})) * layer.rms_weight.value().at({c}) *
                          aggregate[static_cast<std::size_t>(c)] / rms;
        for (std::int64_t j = 0; j < 3; ++j) expected += m.at({i, j}) * x.at({b, j, c});
        EXPECT_NEAR(out.at({b, i, c}), expected, 1e-14);
      }
  }
}

TEST(MHCLayer, ItsOpHasTheEpsOfPyTorchsNorms) {
  Rng rng(2);
  const Tensor pre = random({2}, rng), post = random({2}, rng), res = random({2, 2}, rng), w = random({3}, rng);
  const Tensor x = Tensor(1e-3 * random({4, 2, 3}, rng));
  EXPECT_TRUE(identical(mhc_layer(pre, post, res, w, x).value(), mhc_layer(pre, post, res, w, x, 1e-5).value()));
}

TEST(MHCLayer, IsNearlyTheIdentityAtTheStart) {
  Rng rng(1);
  for (const std::int64_t n : {1, 2, 4, 64}) {
    const MHCLayer layer(n, 6, {.dtype = DType::f64});
    const Tensor x = random({2, n, 6}, rng);
    EXPECT_LT(largest_difference(layer(x).value(), x), 2e-3) << n << " streams";
    EXPECT_LT(largest_difference(layer.mixing_matrix().value(), eye(n, DType::f64)), 6e-4);
  }
  const MHCLayer layer(2, 6);
  EXPECT_THAT(layer.h_pre_raw.value().to_vector<double>(), Each(-12));
  EXPECT_THAT(layer.h_post_raw.value().to_vector<double>(), Each(-12));
  EXPECT_THAT(layer.h_res_raw.value().to_vector<double>(), ElementsAre(0, -12, -12, 0));
}

TEST(MHCLayer, StartsAsAResidualConnectionWhenAskedTo) {
  Rng rng(1);
  const Tensor x = random({2, 6}, rng);
  for (const std::int64_t n : {1, 2, 4}) {
    const MHCLayer layer(n, 6, {.eps = 1e-9, .init = MHCLayerInit::residual, .dtype = DType::f64});
    const TestLayer f(6, rng);
    const Tensor y = layer.close(layer(layer.open(x), f)).value();
    EXPECT_LT(largest_difference(y, (Var(x) + f(rms_norm(x, 1e-9))).value()), 1e-13);
  }
}

TEST(MHCLayer, HasADoublyStochasticMixingMatrix) {
  const Tensor m = make(8, 2).mixing_matrix().value();
  EXPECT_LT(marginal_error(m, -2), 1e-12);
  EXPECT_LT(marginal_error(m, -1), 1e-3);
}

TEST(MHCLayer, PassesGradcheckAroundALayer) {
  Rng rng(3);
  for (const auto& [streams, channels] : {std::pair{2, 4}, {4, 3}, {5, 5}})
    expect_right_gradients(make(streams, channels), random({2, streams, channels}, rng), channels);
}

TEST(MHCLayer, PassesGradcheckAlone) {
  Rng rng(3);
  for (const auto& [streams, channels] : {std::pair{1, 5}, {4, 3}, {16, 2}}) {
    MHCLayer layer = make(streams, channels);
    const Tensor x = random({2, streams, channels}, rng);
    const GradcheckResult params = gradcheck_module(layer, [&](const MHCLayer& m) { return m(x); });
    EXPECT_TRUE(params.ok) << params.message;
    const GradcheckResult input = gradcheck([&](std::span<const Var> in) { return layer(in[0]); }, {x});
    EXPECT_TRUE(input.ok) << input.message;
  }
}

TEST(MHCLayer, TakesSequencesWithTheStreamsInTheLastAxis) {
  Rng rng(3);
  FlatMHCLayer flat(4, 3, {.dtype = DType::f64});
  flat.layer = make(4, 3);
  const Tensor x = random({2, 5, 12}, rng);
  EXPECT_TRUE(identical(flat(x).value(), flat.layer(x.reshape({2, 5, 4, 3})).value().reshape({2, 5, 12})));
  EXPECT_THAT(param_names(flat), param_names(flat.layer));
  EXPECT_THAT(
      [&] {
        flat(zeros({2, 5, 10}, DType::f64));
      },
      ThrowsMessage<ShapeError>(HasSubstr("FlatMHCLayer: x must have shape [..., 4 x 3] but has [2, 5, 10]")));
}

TEST(MHCLayer, ReusesTheMixingMatrixInEvaluationUntilItChanges) {
  MHCLayer layer = make(4, 3);
  const Tensor first = layer.mixing_matrix().value();
  EXPECT_EQ(layer.mixing_matrix().value().data<double>(), first.data<double>());
  layer.h_res_raw.mutable_value().mutable_data<double>()[1] += 1;
  const Tensor second = layer.mixing_matrix().value();
  EXPECT_GT(largest_difference(second, first), 1e-3);
  EXPECT_EQ(layer.mixing_matrix().value().data<double>(), second.data<double>());
  layer.settings.sinkhorn_iterations = 1;
  EXPECT_GT(largest_difference(layer.mixing_matrix().value(), second), 1e-6);
}

TEST(MHCLayer, NamesItsParameters) {
  EXPECT_THAT(param_names(make(4, 3)), ElementsAre("h_pre_raw", "h_post_raw", "h_res_raw", "rms_weight"));
}

TEST(MHCLayer, RejectsSettingsAndInputsThatDoNotFit) {
  EXPECT_THAT([] { MHCLayer(0, 4); }, ThrowsMessage<ValueError>(HasSubstr("MHCLayer: streams must be >= 1 but is 0")));
  EXPECT_THAT([] { MHCLayer(4, 0); }, ThrowsMessage<ValueError>(HasSubstr("channels must be >= 1 but is 0")));
  EXPECT_THAT([] { MHCLayer(4, 4, {.sinkhorn_iterations = 0}); },
              ThrowsMessage<ValueError>(HasSubstr("sinkhorn_iterations must be >= 1 but is 0")));
  const MHCLayer layer = make(4, 3);
  EXPECT_THAT(
      [&] {
        layer(zeros({2, 3, 3}, DType::f64));
      },
      ThrowsMessage<ShapeError>(
          HasSubstr("MHCLayer: x must have shape [..., 4, 3] (streams, channels) but has [2, 3, 3]")));
}

}  // namespace
}  // namespace braid::mhc::mhc_layer_test
