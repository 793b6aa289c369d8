#include <braid/mhc/ops/attention_residual.h>

#include <cmath>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/mhc/support.h>

namespace braid::mhc::attention_residual_test {
namespace {

std::vector<Var> random_states(std::int64_t n, const Shape& shape, Rng& rng) {
  std::vector<Var> states;
  for (std::int64_t i = 0; i < n; ++i) states.emplace_back(random(shape, rng));
  return states;
}

TEST(AttentionResidual, IsTheMeanOfTheStatesUnderAZeroQuery) {
  Rng rng(1);
  const std::vector<Var> states = random_states(3, {2, 5}, rng);
  const Var zero = zeros({5}, DType::f64), norm = random({5}, rng);
  const Var mean = (states[0] + states[1] + states[2]) / 3;
  EXPECT_LT(largest_difference(attention_residual(zero, norm, states).value(), mean.value()), 1e-15);
  EXPECT_THAT(attention_residual_weights(zero, norm, states).value().to_vector<double>(),
              testing::Each(testing::DoubleNear(1.0 / 3, 1e-16)));
}

TEST(AttentionResidual, IsAStateThatIsAlone) {
  Rng rng(1);
  const std::vector<Var> states = random_states(1, {7, 3}, rng);
  const Tensor y = attention_residual(random({3}, rng), random({3}, rng), states).value();
  EXPECT_TRUE(identical(y, states[0].value()));
}

// v = (3, 4) and (0, 10) have the mean squares 12.5 and 50.
TEST(AttentionResidual, WeighsNormalizedStates) {
  const std::vector<Var> states{Tensor::of<double>({2}, {3, 4}), Tensor::of<double>({2}, {0, 10})};
  const Var query = Tensor::of<double>({2}, {1, 2}), norm = Tensor::of<double>({2}, {2, 0.5});
  const double z0 = (3 * 2 + 4) / std::sqrt(12.5), z1 = 10 / std::sqrt(50.0);
  const double w0 = 1 / (1 + std::exp(z1 - z0)), w1 = 1 - w0;
  for (const bool composed : {false, true}) {
    const Form form(composed);
    const std::vector<double> y = attention_residual(query, norm, states, 0).value().to_vector<double>();
    EXPECT_NEAR(y[0], 3 * w0, 1e-14);
    EXPECT_NEAR(y[1], 4 * w0 + 10 * w1, 1e-14);
    const std::vector<double> w = attention_residual_weights(query, norm, states, 0).value().to_vector<double>();
    EXPECT_NEAR(w[0], w0, 1e-14);
    EXPECT_NEAR(w[1], w1, 1e-14);
  }
}

// v = (3, 4) / 1000 and (0, 10) / 1000 have the mean squares 12.5e-6 and 50e-6.
TEST(AttentionResidual, AddsAMillionthToMeanSquaresUnlessTold) {
  const std::vector<Var> states{Tensor::of<double>({2}, {3e-3, 4e-3}), Tensor::of<double>({2}, {0, 1e-2})};
  const Var query = Tensor::of<double>({2}, {1, 2}), norm = Tensor::of<double>({2}, {2, 0.5});
  const double w = 1 / (1 + std::exp(10 / std::sqrt(51.0) - 10 / std::sqrt(13.5)));
  EXPECT_NEAR(attention_residual(query, norm, states).value().at({0}), 3e-3 * w, 1e-16);
  EXPECT_NEAR(attention_residual_in_turn(query, norm, states).first.value().at({0}), 3e-3 * w, 1e-16);
  EXPECT_NEAR(attention_residual_weights(query, norm, states).value().at({0}), w, 1e-14);
}

TEST(AttentionResidual, DoesNotOverflowAndDividesByNoZero) {
  Rng rng(1);
  std::vector<Var> states = random_states(3, {4, 6}, rng);
  states.push_back(zeros({4, 6}, DType::f64));
  const Var far = 1e4 * Var(random({6}, rng)), norm = ones({6}, DType::f64);
  Tape tape;
  std::vector<Var> on_tape;
  for (const Var& state : states) on_tape.push_back(tape.watch(state.value()));
  const Var y = attention_residual(far, norm, on_tape);
  tape.backward(sum(y));
  for (const Var& state : on_tape)
    for (const double d : tape.gradient(state).to_vector<double>()) EXPECT_TRUE(std::isfinite(d));
  for (const double v : y.value().to_vector<double>()) EXPECT_TRUE(std::isfinite(v));
}

// One state is a constant, one is also read by others, and nobody uses the last read.
TEST(AttentionResidual, InTurnHasTheGradientsOfReadsOnTheirOwn) {
  Rng rng(1);
  const Tensor row = random({6}, rng), scale = random({6}, rng);
  const std::vector<Var> start = random_states(3, {4, 6}, rng);
  const auto gradients = [&](auto&& read) {
    Tape tape;
    std::vector<Var> watched{tape.watch(row), tape.watch(scale), tape.watch(start[0].value()),
                             tape.watch(start[1].value())};
    std::vector<Var> states{watched[2], watched[3], start[2]};
    Var total = sum(watched[2]);
    for (int reads = 0; reads < 3; ++reads) {
      const Var y = read(watched[0], watched[1], states);
      if (reads < 2) total = total + sum(y * y) + sum(states[1]);
      states.push_back(states[1] + y);
    }
    tape.backward(total);
    std::vector<Tensor> result;
    for (const Var& v : watched) result.push_back(tape.gradient(v));
    return result;
  };
  const auto alone = [](const Var& query, const Var& norm, const std::vector<Var>& states) {
    return attention_residual(query, norm, states);
  };
  const auto in_turn = [](const Var& query, const Var& norm, std::vector<Var>& states) {
    auto [y, passed] = attention_residual_in_turn(query, norm, states);
    states = std::move(passed);
    EXPECT_TRUE(states[0].requires_grad());
    EXPECT_FALSE(states[2].requires_grad());
    return y;
  };
  const std::vector<Tensor> expected = gradients(alone), found = gradients(in_turn);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_LT(largest_difference(found[i], expected[i]), 1e-13) << i;
  const Form composed(true);
  const std::vector<Tensor> twin = gradients(in_turn);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_LT(largest_difference(twin[i], expected[i]), 1e-13) << i;
}

TEST(AttentionResidual, TakesEmptyStates) {
  for (const Shape& shape : {Shape{0, 3}, Shape{2, 0}, Shape{0}}) {
    const Var row = zeros({shape[-1]});
    Tape tape;
    const Var state = tape.watch(zeros(shape)), query = tape.watch(row.value());
    const Var y = attention_residual(query, row, std::vector{state, state});
    EXPECT_EQ(y.shape(), shape);
    tape.backward(y, zeros(shape));
    EXPECT_EQ(tape.gradient(state).shape(), shape);
    EXPECT_TRUE(identical(tape.gradient(query), zeros({shape[-1]})));
  }
}

}  // namespace
}  // namespace braid::mhc::attention_residual_test
