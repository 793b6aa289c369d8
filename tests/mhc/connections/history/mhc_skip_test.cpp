#include <braid/mhc/connections/history/mhc_skip.h>

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/ops/projections.h>
#include <braid/mhc/streams/telemetry.h>
#include <tests/mhc/support.h>

namespace braid::mhc::mhc_skip_test {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using testing::ThrowsMessage;

std::vector<Constraint> all_constraints() {
  return {simplex_constraint(0.7), identity_constraint(0.1, 0.7), doubly_stochastic_constraint(0.7)};
}

MHCSkip make(SkipMode mode, Constraint constraint = simplex_constraint(),
             SkipProjection projection = SkipProjection::forward) {
  Rng rng(2);
  MHCSkip skip({.mode = mode, .constraint = std::move(constraint), .projection = projection, .dtype = DType::f64});
  randomize(skip, rng, 1);
  skip.project();
  return skip;
}

std::vector<Var> states(int count, Rng& rng) {
  std::vector<Var> list;
  for (int i = 0; i < count; ++i) list.emplace_back(random({2, 3}, rng));
  return list;
}

std::vector<double> values(const Var& v) { return v.value().to_vector<double>(); }

TEST(MHCSkip, AddsTheWeightedHistory) {
  Rng rng(1);
  const std::vector<Var> history = states(3, rng);
  const Var x = random({2, 3}, rng);
  for (const SkipMode mode : {SkipMode::residual, SkipMode::hc, SkipMode::mhc}) {
    const MHCSkip skip = make(mode);
    const std::vector<double> alpha = values(skip.weights(3));
    Var expected = x;
    for (std::size_t k = 0; k < 3; ++k) expected = expected + alpha[k] * history[k];
    EXPECT_LT(largest_difference(skip(x, history).value(), expected.value()), 1e-15);
  }
}

TEST(MHCSkip, TakesItsWeightsFromModeAndConstraint) {
  const MHCSkip hc = make(SkipMode::hc);
  EXPECT_EQ(values(hc.weights(4)), values(hc.mixing_logits));
  EXPECT_THAT(values(make(SkipMode::residual).weights(3)), ElementsAre(0, 0, 1));
  EXPECT_EQ(make(SkipMode::residual).weights(3).dtype(), DType::f64);
  const MHCSkip simplex = make(SkipMode::mhc, simplex_constraint(0.7));
  EXPECT_EQ(values(simplex.weights(4)), values(simplex_softmax(simplex.mixing_logits, 0.7)));
  const MHCSkip identity = make(SkipMode::mhc, identity_constraint(0.1, 0.7));
  EXPECT_EQ(values(identity.weights(4)), values(identity_preserving(identity.mixing_logits, 0.1, 0.7)));
  const MHCSkip matrix = make(SkipMode::mhc, doubly_stochastic_constraint(0.7));
  const Tensor mixed = doubly_stochastic(matrix.mixing_logits, 0.7).value();
  EXPECT_EQ(values(matrix.weights(4)), mixed.select(0, 3).to_vector<double>());
}

TEST(MHCSkip, TakesTheLastLogitsForAShortHistory) {
  const MHCSkip simplex = make(SkipMode::mhc);
  EXPECT_EQ(values(simplex.weights(2)), values(simplex_softmax(slice(simplex.mixing_logits, 0, 2, 4))));
  const MHCSkip matrix = make(SkipMode::mhc, doubly_stochastic_constraint());
  const Tensor corner = matrix.mixing_logits.value().slice(0, 2, 4).slice(1, 2, 4);
  EXPECT_EQ(values(matrix.weights(2)), doubly_stochastic(corner).value().select(0, 1).to_vector<double>());
}

TEST(MHCSkip, LeavesTheOldestOutOfALongHistoryAndPassesXThroughWithoutOne) {
  Rng rng(1);
  const MHCSkip skip = make(SkipMode::mhc);
  const std::vector<Var> history = states(6, rng);
  const Var x = random({2, 3}, rng);
  EXPECT_TRUE(identical(skip(x, history).value(), skip(x, std::span(history).last(4)).value()));
  EXPECT_TRUE(identical(skip(x, std::span<const Var>()).value(), x.value()));
  EXPECT_TRUE(identical(make(SkipMode::residual)(x, history).value(), (x + history.back()).value()));
}

TEST(MHCSkip, KeepsConstrainedWeightsInTheSimplexForAnyHistory) {
  for (const Constraint& constraint : all_constraints())
    for (const SkipProjection projection : {SkipProjection::forward, SkipProjection::post_step})
      for (const std::int64_t k : {1, 2, 3, 4}) {
        const std::vector<double> alpha = values(make(SkipMode::mhc, constraint, projection).weights(k));
        double total = 0;
        for (const double a : alpha) total += a;
        EXPECT_NEAR(total, 1, 1e-8) << constraint.name;
        EXPECT_THAT(alpha, Each(Ge(-1e-9))) << constraint.name;
        EXPECT_GE(alpha.back(), constraint.name == "identity" ? 0.1 - 1e-12 : 0);
      }
}

TEST(MHCSkip, StartsAsItsInitSays) {
  const auto weights = [](SkipInit init, SkipMode mode, SkipProjection projection = SkipProjection::forward) {
    return values(MHCSkip({.mode = mode, .init = init, .projection = projection, .dtype = DType::f64}).weights(4));
  };
  const double rest = std::exp(-10.0), total = 1 + 3 * rest;
  EXPECT_THAT(weights(SkipInit::identity, SkipMode::mhc),
              Pointwise(DoubleNear(1e-15), {rest / total, rest / total, rest / total, 1 / total}));
  for (const SkipInit init : {SkipInit::uniform, SkipInit::zeros})
    EXPECT_THAT(weights(init, SkipMode::mhc), Each(0.25));
  EXPECT_THAT(weights(SkipInit::identity, SkipMode::hc), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(weights(SkipInit::uniform, SkipMode::hc), Each(0.25));
  EXPECT_THAT(weights(SkipInit::zeros, SkipMode::hc), Each(0));
  EXPECT_THAT(weights(SkipInit::identity, SkipMode::mhc, SkipProjection::post_step), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(weights(SkipInit::zeros, SkipMode::mhc, SkipProjection::post_step), Each(0.25));
  EXPECT_THAT(weights(SkipInit::zeros, SkipMode::mhc, SkipProjection::none), Each(0));
  const MHCSkip matrix({.constraint = doubly_stochastic_constraint(), .max_history = 2});
  EXPECT_THAT(values(matrix.mixing_logits), ElementsAre(0, -10, -10, 0));
}

TEST(MHCSkip, ProjectsItsParametersAfterAStepOnlyWithPostStep) {
  for (const Constraint& constraint : all_constraints()) {
    MHCSkip skip = make(SkipMode::mhc, constraint, SkipProjection::post_step);
    skip.mixing_logits.mutable_value().mutable_data<double>()[1] += 3;  // an optimizer step
    const std::vector<double> raw = values(skip.mixing_logits);
    EXPECT_EQ(values(skip.weights(4)), std::vector<double>(raw.end() - 4, raw.end()));
    const Tensor expected = constraint.project(skip.mixing_logits.value());
    skip.project();
    EXPECT_TRUE(identical(skip.mixing_logits.value(), expected));
    MHCSkip forward = make(SkipMode::mhc, constraint);
    const Tensor before = forward.mixing_logits.value();
    forward.project();
    EXPECT_TRUE(identical(forward.mixing_logits.value(), before));
  }
}

TEST(MHCSkip, ProjectsOntoTheNearestWeights) {
  Rng rng(4);
  for (const Constraint& constraint : all_constraints())
    for (int trial = 0; trial < 20; ++trial) {
      const Shape shape = constraint.matrix ? Shape{4, 4} : Shape{4};
      const Tensor v = random(shape, rng), w = constraint.project(v);
      EXPECT_LT(largest_difference(constraint.project(w), w), 1e-8) << constraint.name;
      // Nearest: v - w makes an obtuse angle with the way to every other point of the set.
      for (int other = 0; other < 20; ++other) {
        const Var there = constraint.weights(random(shape, rng));
        EXPECT_LT(sum((Var(v) - w) * (there - w)).value().item(), 1e-3) << constraint.name;
      }
    }
}

TEST(MHCSkip, ShowsItsWeightsToTelemetryNewestFirst) {
  Rng rng(1);
  MHCSkip skip({.mode = SkipMode::hc, .max_history = 3, .dtype = DType::f64});
  skip.mixing_logits = Tensor::of<double>({3}, {0.1, 0.2, 0.7});
  Telemetry telemetry;
  skip(random({2, 3}, rng), states(3, rng));
  // The next state is 0.7 of the newest, 0.2 and 0.1 of those before; the first two are kept.
  EXPECT_DOUBLE_EQ(telemetry.connections().at(0).forward_gain, 1);
  EXPECT_DOUBLE_EQ(telemetry.connections().at(0).backward_gain, 1.7);
}

TEST(MHCSkip, LetsAnOutsiderConstrainIt) {
  const Constraint halves{"halves", false, [](const Var& z) { return z * 0 + 0.5; }, [](const Tensor& w) { return w; }};
  EXPECT_THAT(values(make(SkipMode::mhc, halves).weights(3)), Each(0.5));
}

/// A skip around a layer with everything that has a gradient.
struct WholeSkip {
  MHCSkip skip;
  TestLayer layer;
  std::vector<Var> history;

  Var operator()() const { return skip(layer(history.back()), history); }
  void params(auto&& visit) {
    visit("skip", skip);
    visit("layer", layer);
    visit("history", history);
  }
};

void expect_right_gradients(const MHCSkip& skip, int depth) {
  Rng rng(5);
  const WholeSkip whole{skip, TestLayer(3, rng), states(depth, rng)};
  const GradcheckResult result = gradcheck_module(whole, [](const WholeSkip& w) { return w(); });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(MHCSkip, PassesGradcheckAroundALayer) {
  for (const int depth : {1, 3, 6}) {
    expect_right_gradients(make(SkipMode::residual), depth);
    expect_right_gradients(make(SkipMode::hc), depth);
    for (const Constraint& constraint : all_constraints())
      expect_right_gradients(make(SkipMode::mhc, constraint), depth);
  }
  for (const Constraint& constraint : all_constraints())
    expect_right_gradients(make(SkipMode::mhc, constraint, SkipProjection::post_step), 4);
}

TEST(MHCSkip, ProjectedAfterTheStepAlsoLearnsFromAShortHistory) {
  MHCSkip skip = make(SkipMode::mhc, simplex_constraint(), SkipProjection::post_step);
  Tape tape;
  skip.mixing_logits = tape.watch(skip.mixing_logits.value());
  tape.backward(sum(skip.weights(2) * Tensor::of<double>({2}, {3, -5})));
  EXPECT_THAT(values(tape.gradient(skip.mixing_logits)), testing::IsSupersetOf({3.0, -5.0}));
}

TEST(MHCSkip, NamesItsParameters) {
  EXPECT_THAT(param_names(make(SkipMode::mhc)), ElementsAre("mixing_logits"));
  EXPECT_THAT(param_names(make(SkipMode::residual)), IsEmpty());
  EXPECT_EQ(make(SkipMode::mhc, doubly_stochastic_constraint()).mixing_logits.shape(), Shape({4, 4}));
}

TEST(MHCSkip, ReadsItsSettingsFromNames) {
  EXPECT_EQ(skip_mode("mhc"), SkipMode::mhc);
  EXPECT_EQ(skip_projection("post_step"), SkipProjection::post_step);
  EXPECT_EQ(skip_init("uniform"), SkipInit::uniform);
  EXPECT_EQ(make_constraint("identity", {.epsilon = 0.2}).name, "identity");
  EXPECT_TRUE(make_constraint("doubly_stochastic").matrix);
  EXPECT_THAT([] { skip_mode("foo"); },
              ThrowsMessage<ValueError>(HasSubstr("MHCSkip: mode must be one of residual, hc, mhc but is 'foo'")));
  EXPECT_THAT([] { make_constraint("foo"); },
              ThrowsMessage<ValueError>(
                  HasSubstr("constraint must be one of simplex, identity, doubly_stochastic but is 'foo'")));
}

TEST(MHCSkip, MakesConstraintsOfTheirSettings) {
  const ConstraintSettings s{.epsilon = 0.2, .temperature = 3};
  Rng rng(6);
  for (const auto& [made, direct] : {std::pair(make_constraint("simplex", s), simplex_constraint(3)),
                                     {make_constraint("identity", s), identity_constraint(0.2, 3)},
                                     {make_constraint("doubly_stochastic", s), doubly_stochastic_constraint(3)},
                                     {make_constraint("identity"), identity_constraint(0.1, 1)},
                                     {identity_constraint(), identity_constraint(0.1, 1)}}) {
    const Tensor z = random(made.matrix ? Shape{3, 3} : Shape{3}, rng);
    EXPECT_EQ(values(made.weights(z)), values(direct.weights(z))) << made.name;
  }
  EXPECT_NO_THROW(identity_constraint(0));
}

TEST(MHCSkip, RejectsSettingsAndHistoriesThatDoNotFit) {
  EXPECT_THAT([] { MHCSkip({.max_history = 0}); },
              ThrowsMessage<ValueError>(HasSubstr("max_history must be >= 1 but is 0")));
  EXPECT_THAT([] { identity_constraint(1); },
              ThrowsMessage<ValueError>(HasSubstr("identity constraint: epsilon must be in [0, 1) but is 1")));
  EXPECT_THROW(identity_constraint(-0.1), ValueError);
  EXPECT_THAT([] { simplex_constraint(-1); },
              ThrowsMessage<ValueError>(HasSubstr("simplex constraint: temperature must be > 0 but is -1")));
  EXPECT_THAT([] { doubly_stochastic_constraint(0); }, ThrowsMessage<ValueError>(HasSubstr("but is 0")));
  const MHCSkip skip = make(SkipMode::mhc);
  const std::vector<Var> history{zeros({2, 3}, DType::f64), zeros({3, 2}, DType::f64)};
  EXPECT_THAT(
      [&] {
        skip(zeros({2, 3}, DType::f64), history);
      },
      ThrowsMessage<ShapeError>(HasSubstr("MHCSkip: history[1] must have the shape [2, 3] of x but has [3, 2]")));
  EXPECT_THAT([&] { skip.weights(5); }, ThrowsMessage<ValueError>(HasSubstr("k must be in [1, 4] but is 5")));
}

/// DenseFormer, arXiv:2402.02622: y_l = sum_{j <= l} a_lj x_j after each layer, x_l = y_(l-1) + layer(y_(l-1)). Its x_j
/// are combinations c_j of y_0 .. y_j, so that y_l is a_ll layer(y_(l-1)) plus a combination of earlier y.
TEST(MHCSkip, IsDenseFormerWithFreeWeightsAndLayersScaledByItsOwn) {
  constexpr std::int64_t kLayers = 5;
  Rng rng(9);
  const auto layer = [](const Var& h) { return tanh(h) * h; };
  const Tensor a = random({kLayers + 1, kLayers + 1}, rng);
  const auto weight = [&](std::int64_t l, std::int64_t j) { return a.at({l, j}) + (l == j ? 2 : 0); };
  const Var embedding = random({2, 3}, rng);
  std::vector<Var> x{embedding}, c{Var(eye(kLayers + 1, DType::f64).select(0, 0))};
  Var y = embedding;
  History state = MHCSkip({.max_history = kLayers}).open(embedding);
  for (std::int64_t l = 1; l <= kLayers; ++l) {
    x.push_back(y + layer(y));
    Var mixed = weight(l, l) * x.back(), rest = eye(kLayers + 1, DType::f64).select(0, l);
    Var alpha = weight(l, l) * Var(eye(kLayers + 1, DType::f64).select(0, l - 1));
    for (std::int64_t j = 0; j < l; ++j) {
      const auto at = static_cast<std::size_t>(j);
      mixed = mixed + weight(l, j) * x[at];
      rest = rest - weight(l, j) * c[at];
      alpha = alpha + weight(l, j) * c[at];
    }
    y = mixed;
    c.push_back(rest / weight(l, l));
    MHCSkip skip({.mode = SkipMode::hc, .max_history = kLayers, .dtype = DType::f64});
    skip.mixing_logits = concat({zeros({kLayers - l}, DType::f64), slice(alpha, 0, 0, l)}, 0);  // the last l count
    state = skip(std::move(state), [&](const Var& h) { return weight(l, l) * layer(h); });
    EXPECT_LT(largest_difference(state.x.value(), y.value()), 1e-11) << l;
  }
}

}  // namespace
}  // namespace braid::mhc::mhc_skip_test
