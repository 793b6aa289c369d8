#include <braid/autograd/ops/sign.h>

#include <braid/autograd/ops/arithmetic.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::sign_test {
namespace {

TEST(Sign, IsMinusOneZeroOrOne) {
  const Tensor x = f64({5}, {-2, -0.0, 0, 3, kInfinity});
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    EXPECT_EQ(sign(x.to(dtype)).dtype(), dtype);
    expect_values(sign(x.to(dtype)), {5}, {-1, 0, 0, 1, 1});
  }
  expect_values(sign(i32({3}, {-2147483647 - 1, 0, 7})), {3}, {-1, 0, 1});
  EXPECT_TRUE(std::isnan(sign(scalar(kNaN)).item()));
  EXPECT_EQ(sign(zeros({0, 2})).shape(), (Shape{0, 2}));
}

TEST(Sign, OnATapeIsAConstant) {
  Tape tape;
  const Var x = tape.watch(f64({2}, {-3, 2}));
  expect_values(sign(x), {2}, {-1, 1});
  EXPECT_EQ(tape.size(), 1U);
  expect_gradients([](auto v) { return v[0] * sign(v[0]); }, {f64({3}, {-1, 2, 0.5})});
}

}  // namespace
}  // namespace braid::op_tests::sign_test
