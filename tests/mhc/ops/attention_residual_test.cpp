#include <braid/mhc/ops/attention_residual.h>

#include <cmath>
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
