#include <braid/autograd/ops/abs.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::abs_test {
namespace {

TEST(Abs, DropsTheSign) {
  expect_values(abs(f64({4}, {-2, 0, 3, -kInfinity})), {4}, {2, 0, 3, kInfinity});
  EXPECT_TRUE(std::isnan(abs(scalar(kNaN)).item()));
}

TEST(Abs, HasNoSlopeAtZero) { EXPECT_EQ(value_and_slope(abs, 0), std::pair(0.0, 0.0)); }

TEST(Abs, TakesIntegers) {
  constexpr std::int32_t kSmallest = std::numeric_limits<std::int32_t>::min();
  const Var y = abs(i32({4}, {-2, 0, 3, kSmallest}));
  EXPECT_EQ(y.dtype(), DType::i32);
  expect_values(y, {4}, {2, 0, 3, kSmallest});
}

}  // namespace
}  // namespace braid::op_tests::abs_test
