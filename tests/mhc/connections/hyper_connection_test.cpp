#include <braid/mhc/connections/hyper_connection.h>

#include <cmath>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/mhc/support.h>

namespace braid::mhc::hyper_connection_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

HyperConnection make(std::int64_t channels, std::int64_t streams, bool dynamic = true) {
  Rng rng(2);
  HyperConnection connection(channels, streams, 0, {.dynamic = dynamic, .dtype = DType::f64});
  randomize(connection, rng);
  return connection;
}

/// The maps of one token x [n, C] by the formula: pre n | post n | res n^2.
std::vector<double> naive_maps(const HyperConnection& c, const Tensor& x) {
  const std::int64_t n = c.streams(), channels = c.channels;
  const auto alpha = [&](std::int64_t k) { return c.alpha.value().at({k}); };
  const auto dot = [&](const Tensor& theta, std::int64_t stream) {
    double square = 0, product = 0;
    for (std::int64_t d = 0; d < channels; ++d) {
      square += x.at({stream, d}) * x.at({stream, d});
      product += theta.at({d}) * x.at({stream, d});
    }
    return std::tanh(product / std::sqrt(square / static_cast<double>(channels) + c.settings.eps));
  };
  std::vector<double> maps;
  for (std::int64_t i = 0; i < n; ++i) maps.push_back(alpha(0) * dot(c.theta_pre.value(), i) + c.b_pre.value().at({i}));
  for (std::int64_t i = 0; i < n; ++i)
    maps.push_back(alpha(1) * dot(c.theta_post.value(), i) + c.b_post.value().at({i}));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      maps.push_back(alpha(2) * dot(c.theta_res.value().select(0, i), j) + c.b_res.value().at({i, j}));
  return maps;
}

TEST(HyperConnection, ComputesItsMapsByTheEquations) {
  Rng rng(1);
  HyperConnection c = make(5, 3);
  c.settings.eps = 0.5;
  const Tensor x = random({2, 3, 5}, rng);
  const StreamMaps maps = c.maps(x);
  for (std::int64_t token = 0; token < 2; ++token) {
    const Tensor expected = Tensor::of<double>({15}, naive_maps(c, x.select(0, token)));
    EXPECT_LT(largest_difference(maps.h_pre.value().select(0, token), expected.slice(0, 0, 3)), 1e-14);
    EXPECT_LT(largest_difference(maps.h_post.value().select(0, token), expected.slice(0, 3, 6)), 1e-14);
    EXPECT_LT(largest_difference(maps.h_res.value().select(0, token), expected.slice(0, 6, 15).reshape({3, 3})), 1e-14);
  }
}

TEST(HyperConnection, StartsStaticAndReadsTheStreamOfItsLayer) {
  Rng rng(1);
  for (const std::int64_t layer : {0, 1, 2, 5}) {
    const HyperConnection c(6, 4, layer, {.dtype = DType::f64});
    const StreamMaps maps = c.maps(random({4, 6}, rng));
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(maps.h_pre.value().at({i}), i == layer % 4 ? 1 : 0);
    EXPECT_THAT(maps.h_post.value().to_vector<double>(), Each(1.0));
    EXPECT_TRUE(identical(maps.h_res.value(), eye(4, DType::f64)));
    EXPECT_THAT(c.alpha.value().to_vector<double>(), Each(0.01));
  }
}

TEST(HyperConnection, EqualsAResidualConnectionAtTheStart) {
  Rng rng(1);
  const TestLayer layer(6, rng);
  const Tensor x = random({2, 6}, rng);
  Streams streams = HyperConnection(6, 3, 0, {.dtype = DType::f64}).open(x);
  Var residual = x;
  for (std::int64_t index = 0; index < 5; ++index) {
    const HyperConnection c(6, 3, index, {.dtype = DType::f64});
    streams = c(streams, layer);
    residual = residual + layer(residual);
    EXPECT_LT(largest_difference(c.close(streams).value(), residual.value()), 1e-13);
  }
  const HyperConnection sums(6, 3, 0, {.reduction = StreamReduction::sum, .dtype = DType::f64});
  EXPECT_LT(largest_difference(sums.close(streams).value(), (3.0 * residual).value()), 1e-12);
}

TEST(HyperConnection, PassesGradcheckAroundALayer) {
  Rng rng(3);
  for (const auto& [channels, streams] : {std::pair{4, 1}, {3, 2}, {5, 4}})
    for (const bool dynamic : {true, false}) {
      const HyperConnection c = make(channels, streams, dynamic);
      expect_right_gradients(c, random({2, streams, channels}, rng), channels);
    }
}

TEST(HyperConnection, TakesAnyLeadingAxes) {
  Rng rng(3);
  for (const bool dynamic : {true, false}) {
    const HyperConnection c = make(5, 3, dynamic);
    const TestLayer layer(5, rng);
    for (const Shape& lead : {Shape{}, Shape{0}, Shape{2}, Shape{2, 3}, Shape{1, 2, 3}}) {
      const Tensor x = random(lead.concat({3, 5}), rng);
      EXPECT_EQ(c(x, layer).shape(), x.shape());
    }
  }
}

TEST(HyperConnection, NamesItsParameters) {
  EXPECT_THAT(param_names(make(4, 2)),
              ElementsAre("theta_pre", "theta_post", "theta_res", "alpha", "b_pre", "b_post", "b_res"));
  EXPECT_THAT(param_names(make(4, 2, false)), ElementsAre("b_pre", "b_post", "b_res"));
}

TEST(HyperConnection, RejectsSettingsAndInputsThatDoNotFit) {
  EXPECT_THAT([] { HyperConnection(4, 0, 0); }, ThrowsMessage<ValueError>(HasSubstr("streams must be >= 1 but is 0")));
  EXPECT_THAT([] { HyperConnection(0, 4, 0); }, ThrowsMessage<ValueError>(HasSubstr("channels must be >= 1 but is 0")));
  EXPECT_THAT([] { HyperConnection(4, 4, -1); },
              ThrowsMessage<ValueError>(HasSubstr("layer_index must be >= 0 but is -1")));
  const HyperConnection c = make(4, 2);
  EXPECT_THAT(
      [&] {
        c.maps(zeros({3, 4}, DType::f64));
      },
      ThrowsMessage<ShapeError>(
          HasSubstr("HyperConnection: x must have shape [..., 2, 4] (streams, channels) but has [3, 4]")));
  HyperConnection bad = c;
  bad.alpha = zeros({2}, DType::f64);
  Streams streams(zeros({3, 2, 4}, DType::f64));
  for (const bool fused : {true, false}) {
    std::optional<Composed> scope;
    if (!fused) scope.emplace(Composed::Ops::connections);
    EXPECT_THAT([&] { bad.read(streams); },
                ThrowsMessage<ShapeError>(HasSubstr("HyperConnection: alpha must have shape [3]")));
  }
}

}  // namespace
}  // namespace braid::mhc::hyper_connection_test
