#include <braid/autograd/ops/cast.h>

#include <limits>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::cast_test {
namespace {

TEST(Cast, Converts) {
  EXPECT_TRUE(identical(cast(f64({3}, {0.1, -2, 3}), DType::f32), Tensor::of<float>({3}, {0.1F, -2, 3})));
  EXPECT_TRUE(identical(cast(f64({3}, {0.9, -2.9, 3}), DType::i32), i32({3}, {0, -2, 3})));
  EXPECT_TRUE(identical(cast(i32({2}, {7, -7}), DType::f64), f64({2}, {7, -7})));
  EXPECT_EQ(cast(zeros({2, 0}), DType::f64).shape(), (Shape{2, 0}));
}

TEST(Cast, GivesEveryNumberAnInteger) {
  const Tensor x = f64({5}, {kNaN, kInfinity, -kInfinity, 1e10, -1e10});
  const int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  EXPECT_TRUE(identical(cast(x, DType::i32), i32({5}, {0, most, least, most, least})));
  EXPECT_TRUE(identical(cast(x.to(DType::f32), DType::i32), i32({5}, {0, most, least, most, least})));
}

TEST(Cast, LeavesXOfThatDtypeAlone) {
  const Tensor x = normal({3});
  EXPECT_EQ(cast(x, DType::f64).value().bytes(), x.bytes());
}

TEST(Cast, ConvertsTheGradientBack) {
  for (const auto& [from, to] : {std::pair(DType::f64, DType::f32), std::pair(DType::f32, DType::f64)}) {
    const Tensor dy = f64({2}, {0.5, -3}).to(to);
    const auto grads = gradients([to = to](auto x) { return cast(x[0], to); }, {ones({2}, from)}, dy);
    EXPECT_TRUE(identical(grads[0], dy.to(from)));
  }
}

TEST(Cast, PassesGradcheckAtThePrecisionOfF32) {
  const GradcheckResult result = gradcheck([](auto x) { return cast(cast(x[0], DType::f32), DType::f64); },
                                           {normal({2, 3}).transpose()}, {.tolerance = 1e-5});
  EXPECT_TRUE(result) << result.message;
}

TEST(Cast, IntegersAreConstants) {
  Tape tape;
  const Var x = tape.watch(f64({2}, {1.5, 2.5})), ids = cast(x, DType::i32);
  EXPECT_FALSE(ids.requires_grad());
  EXPECT_FALSE(cast(ids, DType::f64).requires_grad());
}

}  // namespace
}  // namespace braid::op_tests::cast_test
