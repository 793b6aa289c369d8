#include <braid/mhc/connections/released/gated_residual.h>

#include <cmath>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/streams/telemetry.h>
#include <tests/mhc/support.h>

namespace braid::mhc::gated_residual_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class M>
M make(std::int64_t channels, std::int64_t streams, std::int64_t rank = 3) {
  Rng rng(2);
  M module(channels, streams, rng, {.rank = rank, .norm_eps = 1e-5, .dtype = DType::f64});
  randomize(module, rng);
  return module;
}

double sigmoid_of(double v) { return 1 / (1 + std::exp(-v)); }

/// The entries of one token's x [n, C], each divided by its stream's root mean square, times 1 + norm.
std::vector<double> naive_normed(const GatedWeights& w, double eps, const Tensor& x) {
  std::vector<double> normed;
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    double square = 0;
    for (std::int64_t c = 0; c < x.size(1); ++c) square += x.at({i, c}) * x.at({i, c});
    const double r = std::sqrt(square / static_cast<double>(x.size(1)) + eps);
    for (std::int64_t c = 0; c < x.size(1); ++c)
      normed.push_back(x.at({i, c}) / r * (1 + w.norm.value().at({i * x.size(1) + c})));
  }
  return normed;
}

double naive_product(const Tensor& weight, std::int64_t row, const std::vector<double>& v) {
  double sum = 0;
  for (std::size_t k = 0; k < v.size(); ++k) sum += weight.at({row, static_cast<std::int64_t>(k)}) * v[k];
  return sum;
}

/// u [C] of one token by the formula.
std::vector<double> naive_read(const GatedWeights& w, double eps, const Tensor& x) {
  const std::int64_t n = x.size(0), channels = x.size(1);
  const std::vector<double> normed = naive_normed(w, eps, x);
  std::vector<double> h, u(static_cast<std::size_t>(channels), 0.0);
  for (std::int64_t k = 0; k < w.down.size(0); ++k) {
    const double low = naive_product(w.down.value(), k, normed) / static_cast<double>(n);
    h.push_back(low * sigmoid_of(low));
  }
  for (std::int64_t at = 0; at < n * channels; ++at)
    u[static_cast<std::size_t>(at % channels)] +=
        sigmoid_of(naive_product(w.up.value(), at, h)) * normed[static_cast<std::size_t>(at)] / static_cast<double>(n);
  return u;
}

TEST(GatedResidual, ComputesByTheEquations) {
  Rng rng(1);
  const Tensor x = random({2, 3, 5}, rng);
  for (const bool composed : {true, false}) {
    const Form form(composed);
    const auto c = make<GatedResidual>(5, 3);
    const Tensor y = c(x, [](const Var& u) { return tanh(u); }).value();
    for (std::int64_t t = 0; t < 2; ++t) {
      const Tensor token = x.select(0, t);
      const std::vector<double> u = naive_read(c.gates, 1e-5, token), normed = naive_normed(c.gates, 1e-5, token);
      for (std::int64_t i = 0; i < 3; ++i) {
        const double post = 2 * sigmoid_of(naive_product(c.inject.value(), i, normed) / 3);
        for (std::int64_t k = 0; k < 5; ++k)
          EXPECT_NEAR(y.at({t, i, k}), token.at({i, k}) + post * std::tanh(u[static_cast<std::size_t>(k)]), 1e-14);
      }
    }
  }
}

TEST(GatedHead, ReadsByTheEquations) {
  Rng rng(1);
  const Tensor x = random({4, 7}, rng);
  for (const bool composed : {true, false}) {
    const Form form(composed);
    const auto head = make<GatedHead>(7, 4);
    const Tensor expected = Tensor::of<double>({7}, naive_read(head.gates, 1e-5, x));
    EXPECT_LT(largest_difference(head(x).value(), expected), 1e-14);
    EXPECT_TRUE(identical(head(Streams(x)).value(), head(x).value()));
  }
}

TEST(GatedResidual, PassesGradcheckAroundALayer) {
  Rng rng(3);
  for (const bool composed : {true, false}) {
    const Form form(composed);
    for (const auto& [channels, streams] : {std::pair{3, 1}, {1, 2}, {17, 2}, {3, 5}})
      expect_right_gradients(make<GatedResidual>(channels, streams), random({2, streams, channels}, rng), channels);
  }
}

TEST(GatedHead, PassesGradcheck) {
  Rng rng(3);
  for (const bool composed : {true, false}) {
    const Form form(composed);
    for (const auto& [channels, streams] : {std::pair{3, 1}, {17, 2}, {3, 5}}) {
      const Tensor x = random({2, streams, channels}, rng);
      const auto result = gradcheck_module(make<GatedHead>(channels, streams), [&](const auto& m) { return m(x); });
      EXPECT_TRUE(result.ok) << result.message;
    }
  }
}

/// One network of both kinds: the pass of the next mHC performs the gated residual's pending write.
TEST(GatedResidual, StandsBesideOtherConnectionsOnTheSameStreams) {
  Rng rng(4);
  const TestLayer layer(6, rng);
  const auto run = [&](const GatedResidual& gated, const Var& x) {
    Rng same(5);
    ManifoldConstrainedHC constrained(6, 3, same, {.dtype = DType::f64});
    randomize(constrained, same);
    return gated(constrained(gated(Streams(x), layer), layer), layer).value();
  };
  const Tensor x = random({4, 3, 6}, rng), cotangent = random({4, 3, 6}, rng);
  const auto step = value_and_grad([&](const GatedResidual& gated) { return sum(run(gated, x) * cotangent); });
  const auto gated = make<GatedResidual>(6, 3);
  const auto [fused, dfused] = step(gated);
  const Composed scope(Composed::Ops::connections);
  const auto [composed, dcomposed] = step(gated);
  EXPECT_NEAR(fused, composed, 1e-12);
  EXPECT_LT(largest_difference(dfused.gates.down.value(), dcomposed.gates.down.value()), 1e-12);
  EXPECT_LT(largest_difference(dfused.inject.value(), dcomposed.inject.value()), 1e-12);
}

TEST(GatedResidual, TakesAnyLeadingAxesAndSizes) {
  Rng rng(3);
  for (const std::int64_t channels : {1, 3, 17})
    for (const std::int64_t n : {1, 2, 5}) {
      const auto gated = make<GatedResidual>(channels, n);
      const auto head = make<GatedHead>(channels, n);
      const TestLayer layer(channels, rng);
      for (const Shape& lead : {Shape{}, Shape{0}, Shape{1}, Shape{33}, Shape{3, 50}, Shape{1, 2, 3}}) {
        const Tensor x = random(lead.concat({n, channels}), rng);
        const Tensor fused = gated(x, layer).value(), fused_head = head(x).value();
        const Composed scope(Composed::Ops::connections);
        EXPECT_LT(largest_difference(fused, gated(x, layer).value()), 1e-13);
        EXPECT_LT(largest_difference(fused_head, head(x).value()), 1e-13);
      }
    }
}

TEST(GatedResidual, WithoutNoiseStartsAsTheResidualNetworkOfHalfTheNormedState) {
  Rng rng(1);
  const TestLayer layer(6, rng);
  const Tensor x = random({2, 6}, rng);
  const GatedResidual c(6, 3, rng, {.std = 0, .dtype = DType::f64});
  Streams streams = c.open(x);
  Var residual = x;
  for (int depth = 0; depth < 5; ++depth) {
    streams = c(streams, layer);
    residual = residual + layer(0.5 * rms_norm(residual, c.settings.norm_eps));
    EXPECT_LT(largest_difference(c.close(streams).value(), residual.value()), 1e-13);
  }
}

TEST(GatedResidual, StartsNearThePreNormResidualNetwork) {
  Rng rng(1);
  const std::int64_t channels = 64;
  const TestLayer body(channels, rng);
  const auto layer = [&](const Var& u) { return body(rms_norm(u, 1e-6)); };
  const Tensor x = random({8, channels}, rng);
  Streams streams(expand_streams(x, 4));
  Var residual = x;
  for (int depth = 0; depth < 6; ++depth) {
    const GatedResidual c(channels, 4, rng, {.dtype = DType::f64});
    streams = c(streams, layer);
    residual = residual + layer(residual);
  }
  const double scale = largest_difference(residual.value(), zeros(residual.shape(), DType::f64));
  EXPECT_LT(largest_difference(reduce_streams(streams.value()).value(), residual.value()), 0.01 * scale);
}

TEST(GatedResidual, GivesEveryParameterAGradientAtTheStart) {
  Rng rng(1);
  const GatedResidual c(6, 3, rng, {.dtype = DType::f64});
  expect_right_gradients(c, random({4, 3, 6}, rng), 6);
}

TEST(GatedResidual, SetsCopiesApartUnlessWhatFollowsTreatsThemAlike) {
  Rng rng(1);
  const TestLayer layer(6, rng);
  const Tensor x = random({2, 6}, rng), cotangent = random({2, 6}, rng);
  const GatedResidual c(6, 2, rng, {.dtype = DType::f64});
  const GatedHead head(6, 2, rng, {.dtype = DType::f64});
  for (const bool with_head : {false, true}) {
    const auto step = value_and_grad([&](const GatedResidual& m) {
      const Streams y = m(m.open(x), layer);
      return sum((with_head ? head(y) : m.close(y)) * cotangent);
    });
    const Tensor inject = step(c).second.inject.value();
    EXPECT_EQ(largest_difference(inject.select(0, 0), inject.select(0, 1)) < 1e-15, !with_head);
  }
}

TEST(GatedResidual, TellsTelemetryThatStreamsAreNotMixed) {
  Rng rng(1);
  for (const bool composed : {true, false}) {
    const Form form(composed);
    const Telemetry telemetry;
    make<GatedResidual>(5, 3)(random({2, 3, 5}, rng), TestLayer(5, rng));
    const ConnectionStats stats = telemetry.connections().at(0);
    EXPECT_EQ(stats.forward_gain, 1);
    EXPECT_EQ(stats.row_error, 0);
    EXPECT_FALSE(stats.saturation.has_value());  // its gates are not those of a map of streams
  }
}

TEST(GatedResidual, NamesItsParametersAsCheckpointsDo) {
  const auto c = make<GatedResidual>(6, 4);
  EXPECT_THAT(param_names(c), ElementsAre("hc_norm.weight", "input_mix_weight_down.weight",
                                          "input_mix_weight_up.weight", "block_inject_weight.weight"));
  EXPECT_EQ(c.gates.norm.shape(), Shape({24}));
  EXPECT_EQ(c.gates.down.shape(), Shape({3, 24}));
  EXPECT_EQ(c.gates.up.shape(), Shape({24, 3}));
  EXPECT_EQ(c.inject.shape(), Shape({4, 24}));
  EXPECT_THAT(param_names(make<GatedHead>(6, 4)),
              ElementsAre("hc_norm.weight", "input_mix_weight_down.weight", "input_mix_weight_up.weight"));
}

TEST(GatedResidual, RejectsSettingsAndInputsThatDoNotFit) {
  const auto call = [](std::int64_t channels, std::int64_t streams, const GatedResidualSettings& settings = {}) {
    return [=] {
      Rng rng(1);
      GatedResidual(channels, streams, rng, settings);
    };
  };
  EXPECT_THAT(call(0, 4), ThrowsMessage<ValueError>(HasSubstr("GatedResidual: channels must be >= 1 but is 0")));
  EXPECT_THAT(call(4, 0), ThrowsMessage<ValueError>(HasSubstr("streams must be >= 1 but is 0")));
  EXPECT_THAT(call(4, 4, {.rank = 0}), ThrowsMessage<ValueError>(HasSubstr("rank must be >= 1 but is 0")));
  EXPECT_THAT(call(4, 4, {.std = -1}), ThrowsMessage<ValueError>(HasSubstr("std must be >= 0 but is -1")));
  const auto layer = [](const Var& u) { return u; };
  const Tensor x = zeros({3, 4}, DType::f64);
  EXPECT_THAT([&] { make<GatedResidual>(4, 2)(x, layer); },
              ThrowsMessage<ShapeError>(HasSubstr("GatedResidual: x must have shape [..., 2, 4]")));
  EXPECT_THAT([&] { make<GatedHead>(4, 2)(x); },
              ThrowsMessage<ShapeError>(HasSubstr("GatedHead: x must have shape [..., 2, 4]")));
}

TEST(GatedRead, RejectsParametersThatDoNotFitX) {
  const Var x = zeros({2, 4, 8}), norm = zeros({32}), in = zeros({7, 32}), up = zeros({32, 3}), none = zeros({5});
  const auto read = [&](const Var& a, const Var& b, const Var& c) {
    return [=] { Streams(x).read(GatedMaps{a, b, c, 1e-6}); };
  };
  const auto text = [](const char* message) { return ThrowsMessage<ShapeError>(HasSubstr(message)); };
  EXPECT_THAT(read(none, in, up), text("gated_read: norm must have shape [32] to match x [2, 4, 8] but has [5]"));
  EXPECT_THAT(read(norm, none, up), text("gated_read: in must have shape [7, 32]"));
  EXPECT_THAT(read(norm, in, none), text("gated_read: up must have shape [32, r] to match x [2, 4, 8] but has [5]"));
  EXPECT_THAT([&] { gated_mean({norm, in, up, 1e-6}, x); }, text("gated_mean: in must have shape [3, 32]"));
  EXPECT_THROW(read(zeros({32}, DType::f64), in, up)(), DTypeError);
}

}  // namespace
}  // namespace braid::mhc::gated_residual_test
