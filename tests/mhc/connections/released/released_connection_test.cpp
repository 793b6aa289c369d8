#include <braid/mhc/connections/released/released_connection.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <tests/mhc/support.h>

namespace braid::mhc::released_connection_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

ReleasedConnection make(std::int64_t channels, std::int64_t streams, decltype(deepseek_v4)* factory = deepseek_v4) {
  Rng rng(2);
  ReleasedConnection connection = factory(channels, streams, rng, {.hc_eps = 1e-3, .dtype = DType::f64});
  randomize(connection, rng);
  return connection;
}

TEST(ReleasedConnection, HasTheNamesAndShapesOfItsCheckpoints) {
  const ReleasedConnection c = make(5, 4);
  EXPECT_THAT(param_names(c), ElementsAre("fn", "base", "scale"));
  EXPECT_EQ(c.maps.fn.shape(), Shape({24, 20}));
  EXPECT_EQ(c.maps.base.shape(), Shape({24}));
  EXPECT_EQ(c.maps.scale.shape(), Shape({3}));
}

TEST(ReleasedConnection, OfHunyuanHasNoParametersForMixing) {
  const ReleasedConnection c = make(5, 4, hunyuan_v4);
  EXPECT_THAT(param_names(c), ElementsAre("fn", "base", "scale"));
  EXPECT_EQ(c.maps.fn.shape(), Shape({8, 20}));
  EXPECT_EQ(c.maps.base.shape(), Shape({8}));
  EXPECT_EQ(c.maps.scale.shape(), Shape({2}));
}

TEST(ReleasedConnection, PassesGradcheckAroundALayerFusedAndComposed) {
  Rng rng(3);
  for (const auto factory : {deepseek_v4, hunyuan_v4})
    for (const bool composed : {false, true}) {
      const Form form(composed);
      for (const std::int64_t n : {2, 4}) expect_right_gradients(make(3, n, factory), random({2, n, 3}, rng), 3);
    }
}

TEST(ReleasedConnection, PassesItsSettingsOn) {
  Rng rng(3);
  for (const auto factory : {deepseek_v4, hunyuan_v4}) {
    const ReleasedConnection c =
        factory(3, 2, rng, {.post_magnitude = 3, .reduction = StreamReduction::sum, .keep_every = 2});
    EXPECT_EQ(c.maps.post_magnitude, 3);
    EXPECT_EQ(c.reduction(), StreamReduction::sum);
    EXPECT_EQ(c.keep_every(), 2);
    EXPECT_LT(largest_difference(c.close(c.open(ones({1, 3}))).value(), full({1, 3}, 2, DType::f32)), 1e-6);
  }
}

TEST(ReleasedConnection, IsTheResidualNetworkAtTheStartToItsEps) {
  Rng rng(1);
  const Tensor x = random({2, 6}, rng);
  for (const double eps : {1e-6, 0.0}) {
    Streams streams(expand_streams(x, 4));
    Var residual = x;
    for (int depth = 0; depth < 6; ++depth) {
      const TestLayer body(6, rng);
      const auto layer = [&](const Var& h) { return body(rms_norm(h, 1e-5)); };
      const ReleasedConnection c = deepseek_v4(6, 4, rng, {.hc_eps = eps, .dtype = DType::f64});
      streams = c(streams, layer);
      residual = residual + layer(residual);
      EXPECT_LT(largest_difference(c.close(streams).value(), residual.value()), 1e-13 + 200 * eps);
    }
  }
}

// At least four ports forgot it.
TEST(ReleasedConnection, MixesByCombTransposed) {
  Rng rng(4);
  const ReleasedConnection c = make(5, 4);
  const Tensor x = random({3, 4, 5}, rng);
  const auto layer = [](const Var& u) { return tanh(u); };
  const StreamMaps maps = compose_maps(c.maps.maps(), x);
  const auto written = [&](const Var& h_res) {
    return write_streams(h_res, maps.h_post, x, layer(read_streams(maps.h_pre, x))).value();
  };
  EXPECT_LT(largest_difference(c(x, layer).value(), written(maps.h_res)), 1e-13);
  EXPECT_GT(largest_difference(c(x, layer).value(), written(transpose(maps.h_res))), 0.05);
  // comb, as the models compute it: rows by a softmax, then columns.
  const Tensor fn = c.maps.fn.value(), flat = x.reshape({3, 20});
  const Var w = matmul(flat, Var(fn.transpose())) / sqrt(mean(Var(flat) * flat, {-1}, true) + 1e-6);
  const Var logits = slice(w, -1, 8, 24) * slice(c.maps.scale, 0, 2, 3) + slice(c.maps.base, 0, 8, 24);
  Var comb = softmax(reshape(logits, {3, 4, 4})) + 1e-3;
  comb = comb / (sum(comb, {-2}, true) + 1e-3);
  for (int k = 1; k < 20; ++k)
    for (const int axis : {-1, -2}) comb = comb / (sum(comb, {axis}, true) + 1e-3);
  EXPECT_LT(largest_difference(maps.h_res.value(), transpose(comb).value().contiguous()), 1e-13);
}

TEST(ReleasedConnection, StartsAsOthersTrainItWhenAskedTo) {
  Rng rng(5);
  const ReleasedConnection c = deepseek_v4(64, 4, rng, {.init = ReleasedInit::published, .dtype = DType::f64});
  const StreamMaps maps = compose_maps(c.maps.maps(), zeros({4, 64}, DType::f64));
  for (const double pre : maps.h_pre.value().to_vector<double>()) EXPECT_NEAR(pre, 0.5, 1e-5);
  for (const double res : maps.h_res.value().to_vector<double>()) EXPECT_NEAR(res, 0.25, 1e-5);
  EXPECT_NEAR(std::sqrt(mean(c.maps.fn * c.maps.fn).item()), 0.02, 0.001);
  EXPECT_THAT(c.maps.scale.value().to_vector<double>(), testing::Each(1.0));
}

TEST(ReleasedConnection, RejectsSettingsAndInputsThatDoNotFit) {
  Rng rng;
  EXPECT_NO_THROW(deepseek_v4(4, 4, rng, {.hc_eps = 0, .norm_eps = 0}));
  EXPECT_THAT([&] { deepseek_v4(0, 4, rng); },
              ThrowsMessage<ValueError>("deepseek_v4: channels must be >= 1 but is 0"));
  EXPECT_THAT([&] { deepseek_v4(4, 0, rng); }, ThrowsMessage<ValueError>(HasSubstr("streams must be >= 1")));
  EXPECT_THAT([&] { deepseek_v4(4, 4, rng, {.sinkhorn_iterations = 0}); },
              ThrowsMessage<ValueError>(HasSubstr("iterations must be >= 1 but is 0")));
  EXPECT_THAT(
      [&] {
        make(4, 2)(zeros({3, 4}, DType::f64), [](const Var& u) { return u; });
      },
      ThrowsMessage<ShapeError>(HasSubstr("ReleasedConnection: x must have shape [..., 2, 4]")));
}

}  // namespace
}  // namespace braid::mhc::released_connection_test
