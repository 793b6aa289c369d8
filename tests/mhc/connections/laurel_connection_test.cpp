#include <braid/mhc/connections/laurel_connection.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/streams/telemetry.h>
#include <tests/mhc/support.h>

namespace braid::mhc::laurel_connection_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

LaurelConnection make(std::int64_t channels, std::int64_t rank) {
  Rng rng(1);
  LaurelConnection connection(channels, rank, DType::f64);
  randomize(connection, rng);
  return connection;
}

Var square(const Var& h) { return h * h; }

TEST(LaurelConnection, AddsAMapOfLowRankAndWeighsBothBranches) {
  LaurelConnection connection(2, 1, DType::f64);
  connection.logits = Tensor::of<double>({2}, {std::log(3), 0});  // 1.5 and 0.5
  connection.down = Tensor::of<double>({1, 2}, {1, -1});
  connection.up = Tensor::of<double>({2, 1}, {4, 2});
  const Tensor y = connection(Tensor::of<double>({2, 2}, {1, 2, 3, 5}), square).value();
  const double expected[] = {1.5 * 1 + 0.5 * (1 - 4), 1.5 * 4 + 0.5 * (2 - 2), 1.5 * 9 + 0.5 * (3 - 8),
                             1.5 * 25 + 0.5 * (5 - 4)};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y.to_vector<double>()[i], expected[i], 1e-14) << i;
}

TEST(LaurelConnection, HasRightGradientsFusedAndComposed) {
  for (const auto& [channels, rank] : {std::pair(1, 1), {2, 1}, {5, 3}, {4, 4}})
    for (const Shape& lead : {Shape{}, Shape{1}, Shape{2, 3}})
      for (const bool composed : {false, true}) {
        const Form form(composed);
        Rng rng(2);
        expect_right_gradients(make(channels, rank), random(lead.concat({channels}), rng), channels);
      }
}

TEST(LaurelConnection, StartsAsTheResidualConnectionWithOrthogonalRows) {
  for (const auto& [channels, rank] : {std::pair(8, 4), {7, 3}, {4, 4}, {5, 1}}) {
    Rng rng(3);
    const LaurelConnection connection(channels, rank, DType::f64);
    const Var x = random({2, channels}, rng);
    EXPECT_TRUE(identical(connection(x, square).value(), ResidualConnection()(x, square).value()));
    for (std::int64_t row = 0; row < rank; ++row)
      for (std::int64_t column = 0; column < channels; ++column)
        EXPECT_NEAR(connection.down.value().at({row, column}),
                    column % rank == row ? 1 / std::sqrt(static_cast<double>(rank * channels)) : 0, 1e-16);
  }
}

TEST(LaurelConnection, LearnsEveryParameterWithinTwoSteps) {
  Rng rng(4);
  WholeLayer<LaurelConnection> whole{random({3, 6}, rng), LaurelConnection(6, 3, DType::f64), TestLayer(6, rng)};
  const auto step = value_and_grad([](const auto& w) { return sum(w() * w() * w()); });
  for (const bool moved : {false, true}) {
    const auto grads = step(whole).second;
    for_each_param(grads, [&](const std::string& name, const Var& grad) {
      if (name == "connection.down" && !moved) return;  // a factor of up, which is zero
      for (const double value : grad.value().to_vector<double>()) EXPECT_GT(std::abs(value), 1e-9) << name;
    });
    whole.connection.up = whole.connection.up - 0.01 * grads.connection.up;
  }
}

TEST(LaurelConnection, ShowsTelemetryTheWeightsOfBothBranches) {
  struct Maps : Telemetry {
    StreamMaps seen;
    void record(const StreamMaps& maps, const Var& x) override {
      seen = maps;
      Telemetry::record(maps, x);
    }
  };
  Rng rng(5);
  LaurelConnection connection = make(4, 2);
  connection.logits = Tensor::of<double>({2}, {std::log(3), 0});
  Maps hook;
  connection(random({2, 4}, rng), square);
  ASSERT_EQ(hook.connections().size(), 1);
  EXPECT_NEAR(hook.connections()[0].composed_forward_gain, 0.5, 1e-15);
  EXPECT_NEAR(hook.seen.h_post.item(), 1.5, 1e-15);
  EXPECT_EQ(hook.seen.h_pre.item(), 1);
}

TEST(LaurelConnection, KeepsParametersInF32ForActivationsOfBF16) {
  Rng rng(6);
  const Tensor x = randn({3, 8}, rng);
  LaurelConnection connection(8, 2);
  for_each_param(connection, [&](const std::string&, Var& p) { p = randn(p.shape(), rng); });
  const Tensor y = connection(x.to(DType::bf16), square).value();
  EXPECT_EQ(y.dtype(), DType::bf16);
  const Tensor exact = connection(x.to(DType::bf16).to(DType::f32), square).value();
  EXPECT_LT(largest_difference(y.to(DType::f64), exact.to(DType::f64)), 0.02 * reduce_max(exact).item());
}

TEST(LaurelConnection, NamesItsParameters) {
  EXPECT_THAT(param_names(LaurelConnection(4)), ElementsAre("logits", "down", "up"));
}

TEST(LaurelConnection, TakesNoTokens) {
  EXPECT_EQ(make(4, 2)(Var(zeros({0, 4}, DType::f64)), square).shape(), Shape({0, 4}));
}

TEST(LaurelConnection, RefusesWhatDoesNotFit) {
  for (const std::int64_t rank : {0, 5})
    EXPECT_THAT([&] { LaurelConnection(4, rank); },
                ThrowsMessage<ValueError>(
                    fmt::format("LaurelConnection: rank must be in [1, 4], the channels, but is {}", rank)));
  EXPECT_THAT([] { LaurelConnection(0); }, ThrowsMessage<ValueError>(HasSubstr("rank must be in [1, 0]")));
  const LaurelConnection connection(4);
  EXPECT_THAT(
      [&] {
        connection(Var(zeros({2, 4})), [](const Var& h) { return sum(h, -1); });
      },
      ThrowsMessage<ShapeError>("LaurelConnection: layer must keep the shape [2, 4] but returned [2]"));
  EXPECT_THAT(
      [&] {
        connection(Var(zeros({2, 3})), square);
      },
      ThrowsMessage<ShapeError>(HasSubstr("the last axis of x must have size 4")));
}

}  // namespace
}  // namespace braid::mhc::laurel_connection_test
