#include <braid/nn/gru.h>

#include <cmath>

#include <gmock/gmock.h>

#include <braid/autograd/ops/slice.h>
#include <tests/nn/module_checks.h>
#include <tests/support.h>

namespace braid::nn::gru_test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The states, number by number. x [B, T, in], state [B, size]
Tensor naive(const GRU& gru, const Tensor& x, const Tensor& state) {
  const std::int64_t size = state.size(1);
  Tensor all({x.size(0), x.size(1), size}, DType::f64), h = state.clone();
  const auto sum = [](const Linear& layer, const Tensor& row, std::int64_t out) {
    double total = layer.has_bias() ? layer.bias.value().at({out}) : 0;
    for (std::int64_t i = 0; i < row.numel(); ++i) total += layer.weight.value().at({out, i}) * row.at({i});
    return total;
  };
  for (std::int64_t b = 0; b < x.size(0); ++b)
    for (std::int64_t t = 0; t < x.size(1); ++t) {
      const Tensor before = h.select(0, b).clone(), row = x.select(0, b).select(0, t);
      for (std::int64_t i = 0; i < size; ++i) {
        const double r = sigmoid(sum(gru.input, row, i) + sum(gru.hidden, before, i));
        const double z = sigmoid(sum(gru.input, row, size + i) + sum(gru.hidden, before, size + i));
        const double n = std::tanh(sum(gru.input, row, 2 * size + i) + r * sum(gru.hidden, before, 2 * size + i));
        const double next = (1 - z) * n + z * before.at({i});
        h.mutable_data<double>()[b * size + i] = next;
        all.mutable_data<double>()[(b * x.size(1) + t) * size + i] = next;
      }
    }
  return all;
}

TEST(GRU, FollowsItsEquations) {
  Rng rng(1);
  for (const bool bias : {false, true}) {
    const GRU gru(3, 5, rng, {.bias = bias, .dtype = DType::f64});
    const Tensor x = randn({2, 4, 3}, rng, DType::f64), state = randn({2, 5}, rng, DType::f64);
    expect_close(gru(x, state).value(), naive(gru, x, state));
    expect_close(gru(x).value(), naive(gru, x, zeros({2, 5}, DType::f64)));
  }
}

TEST(GRU, GivesWhatPyTorchs) {  // torch.nn.GRU 2.15 in f64
  Rng rng;
  GRU gru(3, 4, rng, {.dtype = DType::f64});
  gru.input.weight = wave({12, 3}, 0.9);
  gru.hidden.weight = wave({12, 4}, 0.5);
  gru.input.bias = wave({12}, 0.3);
  gru.hidden.bias = wave({12}, 0.7);
  const Tensor x = wave({2, 3, 3}, 1), state = wave({2, 4}, 0.4);
  expect_close(
      gru(x, state).value().select(0, 1).select(0, 2),
      Tensor::of<double>({4}, {0.809688207682267, -0.557913797057224, 0.689930085778557, -0.0927285734152618}));
  const auto [loss, grads] = value_and_grad([&](const GRU& m) { return sum(m(x, state) * wave({2, 3, 4}, 1.1)); })(gru);
  EXPECT_NEAR(sum_of_sizes(grads.hidden.weight.value()), 5.10076482651723, 1e-12);
  const auto [same, dx] = value_and_grad([&](const Var& in) {
    return sum(gru(in, state) * wave({2, 3, 4}, 1.1));
  })(Var(x));
  EXPECT_NEAR(sum_of_sizes(dx.value()), 4.08869323555657, 1e-12);
}

TEST(GRU, ContinuesFromItsLastState) {
  Rng rng(2);
  const GRU gru(2, 3, rng);
  const Tensor x = randn({2, 7, 2}, rng);
  const Var all = gru(x), first = gru(x.slice(1, 0, 3));
  expect_close(gru(x.slice(1, 3, 7), select(first, 1, -1)).value(), all.value().slice(1, 3, 7), 1e-6);
}

TEST(GRU, NamesItsParametersAndTrainsThem) {
  Rng rng(3);
  const GRU gru(3, 4, rng, {.dtype = DType::f64});
  EXPECT_THAT(parameter_names(gru), testing::ElementsAre("input.weight", "input.bias", "hidden.weight", "hidden.bias"));
  const Tensor x = randn({2, 3, 3}, rng, DType::f64);
  expect_gradients(gru, [&](const GRU& m) { return m(x); });
}

TEST(GRU, StartsWithinOneOverTheRootOfItsSize) {
  Rng rng(4);
  const GRU gru(64, 100, rng);
  for_each_param(gru, [](const std::string& name, const Var& p) {
    const auto values = p.value().to_vector<double>();
    const auto [low, high] = std::ranges::minmax(values);
    EXPECT_GE(low, -0.1) << name;
    EXPECT_LE(high, 0.1) << name;
    EXPECT_LT(low, -0.098) << name;
    EXPECT_GT(high, 0.098) << name;
  });
}

TEST(GRU, TakesEmptySequencesAndRefusesWhatDoesNotFit) {
  Rng rng(5);
  const GRU gru(3, 4, rng);
  EXPECT_EQ(gru(zeros({2, 0, 3})).shape(), (Shape{2, 0, 4}));
  EXPECT_EQ(gru(zeros({0, 5, 3})).shape(), (Shape{0, 5, 4}));
  expect_error<ShapeError>([&] { gru(zeros({2, 3})); }, "GRU: x must have shape [B, T, in] but has [2, 3]");
  expect_error<ShapeError>(
      [&] {
        gru(zeros({2, 5, 3}), zeros({1, 4}));
      },
      "GRU: the state must have shape [2, 4] but has [1, 4]");
  expect_error<ValueError>([&] { GRU(0, 4, rng); }, "GRU: in and size must be at least 1 but are 0 and 4");
}

}  // namespace
}  // namespace braid::nn::gru_test
