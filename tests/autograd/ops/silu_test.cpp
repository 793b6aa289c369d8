#include <limits>
#include <utility>

#include <braid/autograd/ops/abs.h>
#include <braid/autograd/ops/cast.h>
#include <braid/autograd/ops/silu.h>
#include <braid/autograd/ops/sum.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::silu_test {
namespace {

using ::testing::ThrowsMessage;

double reference(double x) { return x / (1 + std::exp(-x)); }

TEST(Silu, MatchesTheFormula) { expect_elementwise(silu, reference, -20, 20); }

TEST(Silu, IsZeroOrTheIdentityFarOut) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double end : {1000.0, kInfinity}) {
      EXPECT_EQ(value_and_slope(silu, -end, dtype), std::pair(0.0, 0.0));
      EXPECT_EQ(value_and_slope(silu, end, dtype), std::pair(end, 1.0));
    }
  const Tensor far = cast(Tensor::of<float>({2}, {-1e38F, -std::numeric_limits<float>::infinity()}), DType::bf16);
  const auto [slopes] = vjp([](const Var& x) { return silu(x); }, ones({2}, DType::bf16), far);
  EXPECT_LT(sum(abs(slopes)).item(), 1e-30);
}

TEST(Silu, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return silu(x[0]); }, {normal({3, 5})});
  expect_gradients([](auto x) { return silu(x[0]); }, {f64({4}, {-20, -5, 5, 20})});
}

TEST(Silu, RejectsIntegers) {
  EXPECT_THAT([] { silu(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("silu: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::silu_test
