#include <braid/mhc/connections/attention_pool.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/mhc/support.h>

namespace braid::mhc::attention_pool_test {
namespace {

using testing::ThrowsMessage;

TEST(AttentionPool, IsTheMeanOfCopies) {
  Rng rng(1);
  const Var x = random({2, 3, 5}, rng);
  const Tensor y = AttentionPool(5, DType::f64)(expand_streams(x, 4)).value();
  EXPECT_LT(largest_difference(y, x.value()), 1e-15);
}

TEST(AttentionPool, WeighsStreamsByTheSoftmaxOfEachChannel) {
  AttentionPool pool(2, DType::f64);
  pool.logits = Tensor::of<double>({2, 2}, {0, 2, 1, 0});
  const Var x = Tensor::of<double>({2, 2}, {1, 3, 5, 4});
  const double first = 1 / (1 + std::exp(2.0 * (4 - 3))), second = 1 / (1 + std::exp(5.0 - 1));
  const std::vector<double> y = pool(x).value().to_vector<double>();
  EXPECT_NEAR(y[0], first * 1 + (1 - first) * 5, 1e-14);
  EXPECT_NEAR(y[1], second * 3 + (1 - second) * 4, 1e-14);
}

TEST(AttentionPool, PassesGradcheck) {
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{1, 1}, Shape{3, 1, 2}}) {
    Rng rng(2);
    AttentionPool pool(shape[-1], DType::f64);
    randomize(pool, rng);
    const Tensor x = random(shape, rng);
    const GradcheckResult of_pool = gradcheck_module(pool, [&](const auto& m) { return m(Var(x)); }, {.order = 2});
    EXPECT_TRUE(of_pool.ok) << of_pool.message;
    const GradcheckResult of_x = gradcheck([&](std::span<const Var> in) { return pool(in[0]); }, {x}, {.order = 2});
    EXPECT_TRUE(of_x.ok) << of_x.message;
  }
}

TEST(AttentionPool, RefusesWhatDoesNotFit) {
  EXPECT_THAT([] { AttentionPool(0); }, ThrowsMessage<ValueError>("AttentionPool: channels must be >= 1 but is 0"));
  EXPECT_THAT(
      [] {
        AttentionPool(3)(Var(zeros({2, 4})));
      },
      ThrowsMessage<ShapeError>("AttentionPool: x must have shape [..., n, 3] but has [2, 4]"));
  EXPECT_THAT([] { AttentionPool(3)(Var(zeros({3}))); },
              ThrowsMessage<ShapeError>("AttentionPool: x must have shape [..., n, 3] but has [3]"));
}

}  // namespace
}  // namespace braid::mhc::attention_pool_test
