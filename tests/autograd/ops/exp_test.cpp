#include <braid/autograd/ops/exp.h>

#include <tests/autograd/ops/support.h>

namespace braid {
namespace {

using testing::expect_elementwise;
using testing::expect_gradients;
using testing::i32;
using testing::kInfinity;
using testing::kNaN;
using testing::normal;
using ::testing::ThrowsMessage;
using testing::value_and_slope;

TEST(Exp, MatchesTheStandardLibrary) { expect_elementwise(exp, std::exp, -12, 12); }

TEST(Exp, GoesToZeroAndToInfinity) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(value_and_slope(exp, -kInfinity, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(exp, -1e30, dtype), std::pair(0.0, 0.0));
    EXPECT_EQ(value_and_slope(exp, 1e30, dtype).first, kInfinity);
    EXPECT_EQ(value_and_slope(exp, kInfinity, dtype).first, kInfinity);
    EXPECT_TRUE(std::isnan(value_and_slope(exp, kNaN, dtype).first));
  }
}

TEST(Exp, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return exp(x[0]); }, {normal({3, 5})});
}

TEST(Exp, RejectsIntegers) {
  EXPECT_THAT([] { exp(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("exp: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid
