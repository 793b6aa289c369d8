#include <braid/mhc/connections/frac_connection.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connections/hyper_connection.h>
#include <braid/mhc/streams/telemetry.h>
#include <tests/mhc/support.h>

namespace braid::mhc::frac_connection_test {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

FracConnection make(std::int64_t channels, std::int64_t streams, FracConnectionSettings settings, bool stirred = true) {
  Rng rng(3);
  settings.dtype = DType::f64;
  FracConnection connection(channels, streams, 0, rng, settings);
  if (stirred) randomize(connection, rng);
  return connection;
}

struct Sizes {
  std::int64_t channels, streams;
  FracConnectionSettings settings;
};

std::vector<Sizes> all_sizes() {
  std::vector<Sizes> all;
  for (const bool constrained : {false, true}) {
    all.push_back({6, 1, {.fractions = 3, .constrained = constrained}});
    all.push_back({2, 3, {.fractions = 1, .proposals = 2, .constrained = constrained}});
    all.push_back({4, 2, {.fractions = 2, .proposals = 2, .constrained = constrained}});
  }
  all.push_back({1, 1, {.fractions = 1}});  // constrained, its H_res could only be 1
  return all;
}

TEST(FracConnection, HasRightGradientsFusedAndComposed) {
  for (const Sizes& s : all_sizes())
    for (const bool composed : {false, true}) {
      const Form form(composed);
      Rng rng(1);
      expect_right_gradients(make(s.channels, s.streams, s.settings), random({2, s.streams, s.channels}, rng),
                             s.channels);
    }
}

TEST(FracConnection, IsAHyperConnectionWithOneFraction) {
  Rng rng(1);
  HyperConnection hyper(6, 3, 0, {.dtype = DType::f64});
  randomize(hyper, rng);
  FracConnection frac = make(6, 3, {.fractions = 1});
  frac.theta = concat({expand_dims(hyper.theta_pre, 0), hyper.theta_res}, 0);
  frac.theta_post = expand_dims(hyper.theta_post, 0);
  frac.alpha = hyper.alpha;
  frac.b_pre = expand_dims(hyper.b_pre, 0);
  frac.b_post = expand_dims(hyper.b_post, -1);
  frac.b_res = hyper.b_res;
  const Var x = random({4, 3, 6}, rng);
  const auto layer = [](const Var& h) { return tanh(h); };
  EXPECT_LT(largest_difference(frac(x, layer).value(), hyper(x, layer).value()), 1e-14);
}

TEST(FracConnection, StartsAsTheResidualConnection) {
  Rng rng(1);
  const auto layer = [](const Var& h) { return h * h + 1; };
  for (const std::int64_t streams : {1, 3}) {
    const Var h = random({2, 8}, rng);
    for (const auto& [constrained, bound] : {std::pair(false, 1e-15), {true, 0.05}}) {
      const FracConnection frac = make(8, streams, {.constrained = constrained}, /*stirred=*/false);
      const Var y = frac.close(frac(frac.open(h), layer));
      EXPECT_LT(largest_difference(y.value(), (h + layer(h)).value()), bound);
    }
  }
}

TEST(FracConnection, StartsWithEachFractionOfOneStreamForItself) {
  Rng rng;
  const auto values = [](const Var& v) { return v.value().to_vector<double>(); };
  const FracConnection free(4, 2, 3, rng, {.fractions = 2, .views = 2, .alpha = 0.5, .dtype = DType::f64});
  EXPECT_THAT(values(free.b_pre), ElementsAre(0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1));
  EXPECT_THAT(values(free.b_post), ElementsAre(1, 0, 0, 1, 1, 0, 0, 1));
  EXPECT_TRUE(identical(free.b_res.value(), eye(4, DType::f64)));
  EXPECT_THAT(values(free.alpha), ElementsAre(0.5, 0.5, 0.5));
  const FracConnection bound(2, 2, 0, rng, {.fractions = 2, .constrained = true, .dtype = DType::f64});
  EXPECT_THAT(values(bound.b_pre), ElementsAre(8, -8, -8, -8, -8, 8, -8, -8));
  EXPECT_THAT(values(bound.b_post), ElementsAre(0, -8, -8, 0, 0, -8, -8, 0));
  EXPECT_TRUE(identical(bound.b_res.value(), (8 * Var(eye(4, DType::f64))).value()));
}

// With theta = 0 alpha has no gradient yet; theta_std gives it one, and makes proposals differ.
TEST(FracConnection, LearnsEveryParameterFromItsStart) {
  for (const Sizes& s : all_sizes()) {
    if (s.channels == 1) continue;
    Rng rng(2);
    FracConnectionSettings settings = s.settings;
    settings.theta_std = 0.02;
    const FracConnection frac = make(s.channels, s.streams, settings, /*stirred=*/false);
    const Tensor x = random({3, s.streams, s.channels}, rng), cotangent = random(x.shape(), rng);
    const TestLayer layer(s.channels, rng);
    const auto step = value_and_grad([&](const FracConnection& m) { return sum(m(Var(x), layer) * cotangent); });
    for_each_param(step(frac).second, [](const std::string& name, const Var& grad) {
      EXPECT_GT(largest_difference(grad.value(), zeros(grad.shape(), DType::f64)), 1e-9) << name;
    });
    if (s.settings.proposals == 1) continue;
    const Tensor theta = frac.theta.value();
    const std::int64_t half = theta.size(0) / 2;
    EXPECT_GT(largest_difference(theta.slice(0, 0, half), theta.slice(0, half, 2 * half)), 1e-3);
  }
}

TEST(FracConnection, GivesALayerEveryView) {
  Rng rng(1);
  for (const std::int64_t fractions : {1, 2}) {
    const FracConnection frac = make(4, 2, {.fractions = fractions, .views = 3});
    const Var x = random({5, 2, 4}, rng);
    const StreamMaps maps = frac.maps(x);
    const Var u = frac.read(maps, x);
    EXPECT_EQ(u.shape(), Shape({3, 5, 4}));
    const std::int64_t f = fractions;
    const Var parts = reshape(x, {5, 2 * f, 4 / f});
    for (int view = 0; view < 3; ++view) {
      const Var rows = slice(maps.h_pre, -2, view * f, (view + 1) * f);
      EXPECT_LT(largest_difference(select(u, 0, view).value(), reshape(matmul(rows, parts), {5, 4}).value()), 1e-14);
    }
    const auto step = [&](const FracConnection& m) { return m(x, [](const Var& h) { return sum(h * h, 0); }); };
    const GradcheckResult result = gradcheck_module(frac, step, {.order = 2});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(FracConnection, KeepsConstrainedMapsInTheirSets) {
  Rng rng(1);
  const FracConnection frac = make(6, 2, {.fractions = 3, .proposals = 2, .constrained = true});
  const Telemetry telemetry;
  const Var x = random({4, 2, 6}, rng);
  frac(x, [](const Var& h) { return h; });
  EXPECT_LT(marginal_error(frac.maps(x).h_res.value(), -2), 1e-14);
  EXPECT_LT(marginal_error(frac.maps(x).h_res.value(), -1), 1e-3);
  ASSERT_EQ(telemetry.connections().size(), 1);
  EXPECT_NEAR(telemetry.connections()[0].backward_gain, 1, 1e-12);
  EXPECT_TRUE(telemetry.connections()[0].saturation.has_value());
  make(6, 2, {.fractions = 3})(x, [](const Var& h) { return h; });
  EXPECT_FALSE(telemetry.connections()[1].saturation.has_value());
}

TEST(FracConnection, NamesItsParameters) {
  EXPECT_THAT(param_names(make(4, 1, {})), ElementsAre("theta", "theta_post", "alpha", "b_pre", "b_post", "b_res"));
}

TEST(FracConnection, TakesNoTokens) {
  const FracConnection frac = make(4, 2, {});
  EXPECT_EQ(frac(Var(zeros({0, 2, 4}, DType::f64)), [](const Var& h) { return h; }).shape(), Shape({0, 2, 4}));
}

TEST(FracConnection, RefusesWhatDoesNotFit) {
  const auto expect = [](std::int64_t channels, std::int64_t streams, std::int64_t index,
                         FracConnectionSettings settings, const char* text) {
    Rng rng;
    EXPECT_THAT([&] { FracConnection(channels, streams, index, rng, settings); }, ThrowsMessage<ValueError>(text));
  };
  expect(6, 1, 0, {}, "FracConnection: channels must be a positive multiple of fractions 4 but is 6");
  expect(0, 1, 0, {}, "FracConnection: channels must be a positive multiple of fractions 4 but is 0");
  expect(4, 0, 0, {}, "FracConnection: streams must be >= 1 but is 0");
  expect(4, 1, -1, {}, "FracConnection: layer_index must be >= 0 but is -1");
  expect(4, 1, 0, {.fractions = 0}, "FracConnection: fractions must be >= 1 but is 0");
  expect(4, 1, 0, {.proposals = 0}, "FracConnection: proposals must be >= 1 but is 0");
  expect(4, 1, 0, {.views = 0}, "FracConnection: views must be >= 1 but is 0");
  expect(4, 1, 0, {.sinkhorn_iterations = 0}, "FracConnection: sinkhorn_iterations must be >= 1 but is 0");
  expect(4, 1, 0, {.theta_std = -1}, "FracConnection: theta_std must be >= 0 but is -1");
  const FracConnection frac = make(4, 2, {});
  EXPECT_THAT(
      [&] {
        frac.maps(zeros({3, 4}, DType::f64));
      },
      ThrowsMessage<ShapeError>("FracConnection: x must have shape [..., 2, 4] (streams, channels) but has [3, 4]"));
  EXPECT_THAT(
      [&] {
        frac(Var(zeros({3, 2, 4}, DType::f64)), [](const Var& h) { return sum(h, -1); });
      },
      ThrowsMessage<ShapeError>("FracConnection: f must have shape [3, 4] to match x [3, 2, 4] but has [3]"));
}

}  // namespace
}  // namespace braid::mhc::frac_connection_test
