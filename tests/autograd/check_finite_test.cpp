#include <limits>

#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/tape.h>
#include <tests/support.h>

namespace braid::check_finite_test {
namespace {

TEST(CheckFinite, NamesTheOpAndItsInputShapesInTheForwardPass) {
  const CheckFinite check;
  const Var x = zeros({2, 3});
  EXPECT_THROW(x / zeros({3}), NonFiniteError);
  EXPECT_EQ(message_of([&] { x / zeros({3}); }), "div: forward produced NaN or Inf from inputs of shapes [2, 3], [3]");
}

TEST(CheckFinite, NamesTheOpAndItsInputShapesInTheBackwardPass) {
  const CheckFinite check;
  Tape tape;
  const Var x = tape.watch(full({2}, 1e30)), y = x / 1e-5;
  const Var z = record("outer", ones({2}), {y}, [](const Tensor& dy) { return dy; });
  EXPECT_EQ(message_of([&] { tape.backward(z, full({2}, 1e38)); }),
            "div: vjp produced NaN or Inf from inputs of shapes [2], []");
}

TEST(CheckFinite, NamesTheOpWhoseVjpIsMadeOfOthers) {
  const CheckFinite check;
  Tape tape;
  const Var x = tape.watch(ones({2, 1})), y = matmul(x, full({1, 2}, 1e20));
  EXPECT_EQ(message_of([&] {
              tape.backward(y, full({2, 2}, 1e30));
            }),
            "matmul: vjp produced NaN or Inf from inputs of shapes [2, 1], [1, 2]");
}

TEST(CheckFinite, FindsTheFirstOffender) {
  const CheckFinite check;
  Tape tape;
  const Var x = tape.watch(ones({2}));
  EXPECT_EQ(message_of([&] { -((x * 1e30) * 1e30); }),
            "mul: forward produced NaN or Inf from inputs of shapes [2], []");
}

TEST(CheckFinite, FindsNanAndBothInfinitiesAnywhere) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    const CheckFinite check;
    const Tensor x = Tensor::of<double>({3}, {1, 2, bad});
    EXPECT_THROW(-Var(x), NonFiniteError);
    EXPECT_NO_THROW(-Var(x.slice(0, 0, 2)));
  }
}

TEST(CheckFinite, EndsWithItsScope) {
  const Var zero = zeros({1});
  {
    const CheckFinite outer;
    { const CheckFinite inner; }
    EXPECT_THROW(zero / zero, NonFiniteError);
  }
  EXPECT_NO_THROW(zero / zero);
}

TEST(CheckFinite, IgnoresIntegersAndEmptyTensors) {
  const CheckFinite check;
  EXPECT_NO_THROW(record("ids", ones({2}, DType::i32), {Var(ones({2}))}, [](const Tensor& dy) { return dy; }));
  EXPECT_NO_THROW(-Var(zeros({0, 2})));
}

}  // namespace
}  // namespace braid::check_finite_test
