#include <braid/autograd/ops/dropout.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/compare.h>
#include <braid/autograd/ops/where.h>
#include <braid/autograd/value_and_grad.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::dropout_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Dropout, DropsThatShareAndKeepsTheMean) {
  Rng rng(1);
  const Tensor y = dropout(ones({100000}, DType::f64), 0.3, rng).value();
  double sum = 0, dropped = 0;
  for (const double v : y.to_vector<double>()) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.7);
    sum += v;
    dropped += v == 0;
  }
  EXPECT_NEAR(dropped / 100000, 0.3, 0.01);
  EXPECT_NEAR(sum / 100000, 1, 0.01);
}

TEST(Dropout, DropsOtherElementsInEachCall) {
  const Tensor x = normal({1000});
  Rng rng(3), copy = rng;
  const Tensor first = dropout(x, 0.5, rng), second = dropout(x, 0.5, rng);
  EXPECT_FALSE(identical(first, second));
  EXPECT_TRUE(identical(dropout(x, 0.5, copy).value(), first));
  EXPECT_TRUE(identical(dropout(x, 0.5, copy).value(), second));
  EXPECT_EQ(rng.draws(), 2U);
}

TEST(Dropout, DropsWhatTheNextDrawOfASplitDrops) {
  const Tensor x = ones({1000});
  Rng rng(3), copy = rng;
  Rng split = copy.split();
  EXPECT_TRUE(identical(dropout(x, 0.25, rng).value(), where(rand({1000}, split) < 0.25, 0.0, x / 0.75).value()));
}

TEST(Dropout, TheGradientIsDroppedWhereTheValueIs) {
  const auto dropped = [](const Var& x) {
    Rng rng(3);
    return dropout(x, 0.5, rng);
  };
  const auto grads =
      gradients([&](auto x) { return dropped(x[0]); }, {ones({1000}, DType::f64)}, ones({1000}, DType::f64));
  EXPECT_TRUE(identical(grads[0], dropped(ones({1000}, DType::f64)).value()));
}

TEST(Dropout, OfNothingIsTheIdentity) {
  const Tensor x = normal({5});
  Rng rng(1);
  EXPECT_TRUE(identical(dropout(x, 0, rng).value(), x));
  EXPECT_EQ(rng.draws(), 1U);  // whatever p is
}

/// In checkpoint(), an rng is passed by value: the backward pass drops the same elements again.
TEST(Dropout, IsRepeatedByACheckpointThatCopiesItsRng) {
  Rng rng(4), copy = rng;
  const auto block = [](const Var& x, Rng r) { return dropout(dropout(x, 0.3, r) * x, 0.5, r); };
  const Tensor x = normal({100});
  const auto [dx] = vjp([&](const Var& v) { return checkpoint(block, v, rng.split()); }, ones({100}, DType::f64), x);
  const Rng same = copy.split();
  const auto [expected] = vjp([&](const Var& v) { return block(v, same); }, ones({100}, DType::f64), x);
  EXPECT_TRUE(identical(dx, expected));
}

TEST(Dropout, RejectsAProbabilityOutsideItsRange) {
  Rng rng(1);
  EXPECT_THAT([&] { dropout(zeros({2}), 1, rng); },
              ThrowsMessage<ValueError>("dropout: p must lie in [0, 1) but is 1"));
  EXPECT_THAT([&] { dropout(zeros({2}), -0.5, rng); },
              ThrowsMessage<ValueError>("dropout: p must lie in [0, 1) but is -0.5"));
}

}  // namespace
}  // namespace braid::op_tests::dropout_test
