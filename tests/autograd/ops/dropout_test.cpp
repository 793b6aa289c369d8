#include <braid/autograd/ops/dropout.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::dropout_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Dropout, DropsThatShareAndKeepsTheMean) {
  const Tensor y = dropout(ones({100000}, DType::f64), 0.3, Rng(1)).value();
  double sum = 0, dropped = 0;
  for (const double v : y.to_vector<double>()) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.7);
    sum += v;
    dropped += v == 0;
  }
  EXPECT_NEAR(dropped / 100000, 0.3, 0.01);
  EXPECT_NEAR(sum / 100000, 1, 0.01);
}

TEST(Dropout, RepeatsItselfForTheSameRng) {
  const Tensor x = normal({1000});
  Rng rng(3);
  const Rng copy = rng;
  EXPECT_TRUE(identical(dropout(x, 0.5, rng).value(), dropout(x, 0.5, copy).value()));
  EXPECT_FALSE(identical(dropout(x, 0.5, rng.split()).value(), dropout(x, 0.5, rng.split()).value()));
}

TEST(Dropout, TheGradientIsDroppedWhereTheValueIs) {
  const auto grads = gradients([](auto x) { return dropout(x[0], 0.5, Rng(3)); }, {ones({1000}, DType::f64)},
                               ones({1000}, DType::f64));
  EXPECT_TRUE(identical(grads[0], dropout(ones({1000}, DType::f64), 0.5, Rng(3)).value()));
}

TEST(Dropout, OfNothingIsTheIdentity) {
  const Tensor x = normal({5});
  EXPECT_TRUE(identical(dropout(x, 0, Rng(1)).value(), x));
}

TEST(Dropout, RejectsAProbabilityOutsideItsRange) {
  EXPECT_THAT([] { dropout(zeros({2}), 1, Rng(1)); },
              ThrowsMessage<ValueError>("dropout: p must lie in [0, 1) but is 1"));
  EXPECT_THAT([] { dropout(zeros({2}), -0.5, Rng(1)); },
              ThrowsMessage<ValueError>("dropout: p must lie in [0, 1) but is -0.5"));
}

}  // namespace
}  // namespace braid::op_tests::dropout_test
