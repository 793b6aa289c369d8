#include <braid/autograd/ops/kl_divergence.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

#include <braid/autograd/ops/cross_entropy.h>
#include <braid/autograd/ops/softmax.h>
#include <braid/core/reduce.h>

namespace braid::op_tests::kl_divergence_test {
namespace {

using ::testing::ThrowsMessage;

const Reduction kReductions[] = {Reduction::mean, Reduction::sum, Reduction::none, Reduction::batch_mean};

Tensor probabilities(const Shape& shape, std::uint64_t seed = 2) { return Tensor(softmax(normal(shape, seed))); }

TEST(KLDivergence, MatchesTheDefinition) {
  const Tensor p = probabilities({3, 5}), q = probabilities({3, 5}, 3), log_q = Tensor(log_softmax(normal({3, 5}, 3)));
  Tensor expected(p.shape(), DType::f64);
  for (std::int64_t i = 0; i < 15; ++i)
    expected.mutable_data<double>()[i] = p.data<double>()[i] * std::log(p.data<double>()[i] / q.data<double>()[i]);
  expect_close(kl_divergence(log_q, p, Reduction::none).value(), expected, 1e-14);
  const double sum = reduce_sum(expected).item();
  EXPECT_NEAR(kl_divergence(log_q, p).item(), sum / 3, 1e-14);
  EXPECT_NEAR(kl_divergence(log_q, p, Reduction::sum).item(), sum, 1e-14);
  EXPECT_NEAR(kl_divergence(log_q, p, Reduction::mean).item(), sum / 15, 1e-14);
  EXPECT_NEAR(kl_divergence(log_q.to(DType::f32), p.to(DType::f32)).item(), sum / 3, 1e-6);
}

TEST(KLDivergence, IsCrossEntropyLessEntropy) {
  const Tensor logits = normal({4, 6}, 1), p = probabilities({4, 6});
  const double entropy = -kl_divergence(zeros({4, 6}, DType::f64), p).item();
  EXPECT_NEAR(kl_divergence(log_softmax(logits), p).item(), cross_entropy(logits, p).item() + -entropy, 1e-14);
}

TEST(KLDivergence, IsZeroWhereTheTargetIs) {
  const Tensor log_q = f64({1, 3}, {std::log(0.5), -kInfinity, std::log(0.5)}), p = f64({1, 3}, {1, 0, 0});
  expect_close(kl_divergence(log_q, p, Reduction::none).value(), f64({1, 3}, {std::log(2), 0, 0}));
  expect_close(gradients([&](auto x) { return kl_divergence(x[0], p); }, {log_q}, f64({}, {1}))[0],
               f64({1, 3}, {-1, 0, 0}));
}

TEST(KLDivergence, GradientsPassGradcheck) {
  for (const Reduction reduction : kReductions)
    expect_gradients([=](auto x) { return kl_divergence(x[0], x[1], reduction); },
                     {normal({3, 4}, 1), probabilities({3, 4})});
}

TEST(KLDivergence, OfNothingIsZero) {
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::batch_mean})
    EXPECT_EQ(kl_divergence(zeros({0, 3}), zeros({0, 3}), reduction).item(), 0);
  EXPECT_EQ(kl_divergence(zeros({}), ones({})).item(), 0);
}

TEST(KLDivergence, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads([](auto x) { return kl_divergence(x[0], x[1]); },
                                  {normal({90, 1000}, 1), probabilities({90, 1000})});
}

TEST(KLDivergence, RejectsWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        kl_divergence(zeros({2, 3}), zeros({3}));
      },
      ThrowsMessage<ShapeError>(
          "kl_divergence: targets must have shape [2, 3] to match log_probabilities but have [3]"));
  EXPECT_THAT([] { kl_divergence(zeros({2}), zeros({2}, DType::f64)); },
              ThrowsMessage<DTypeError>("kl_divergence: inputs must have the same dtype but have f32 and f64"));
}

}  // namespace
}  // namespace braid::op_tests::kl_divergence_test
