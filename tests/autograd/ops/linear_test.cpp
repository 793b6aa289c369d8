#include <braid/autograd/ops/linear.h>

#include <braid/autograd/ops/transpose.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::linear_test {
namespace {

using ::testing::ThrowsMessage;

const auto kLinear = [](std::span<const Var> x) { return linear(x[0], x[1], x[2]); };

TEST(Linear, AgreesWithItsComposedForm) {
  const auto inputs = [](DType dtype) {
    return std::vector{normal({33, 65}, 1, dtype), normal({17, 65}, 2, dtype), normal({17}, 3, dtype)};
  };
  expect_composed_form(kLinear, inputs(DType::f64), 1e-12);
  expect_composed_form(kLinear, inputs(DType::f32), 1e-5);
}

TEST(Linear, TakesAVector) {
  const Tensor x = normal({5}, 1), weight = normal({4, 5}, 2), bias = normal({4}, 3);
  EXPECT_EQ(linear(x, weight, bias).shape(), Shape{4});
  expect_gradients(kLinear, {x, weight, bias});
}

TEST(Linear, GradientsOfAStridedInputPassGradcheck) {
  expect_gradients([](auto x) { return linear(transpose(x[0], 0, 1), transpose(x[1]), x[2]); },
                   {normal({3, 2, 5}, 1), normal({5, 4}, 2), normal({4}, 3)});
}

TEST(Linear, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads(
      kLinear, {normal({300, 70}, 1, DType::f32), normal({130, 70}, 2, DType::f32), normal({130}, 3, DType::f32)});
}

TEST(Linear, NoRowsGiveNoOutputAndZeroGradients) {
  const auto grads = gradients(kLinear, {zeros({0, 3}), ones({2, 3}), ones({2})}, zeros({0, 2}));
  EXPECT_EQ(grads[0].shape(), (Shape{0, 3}));
  expect_close(grads[1], zeros({2, 3}));
  expect_close(grads[2], zeros({2}));
}

TEST(Linear, TakesEachParameterInBF16OrF32) {
  const Tensor x = normal({5, 9}, 1, DType::bf16), dy = normal({5, 4}, 4, DType::bf16);
  const std::vector narrow{x, normal({4, 9}, 2, DType::bf16), normal({4}, 3, DType::bf16)};
  const Tensor y = kLinear(std::vector<Var>(narrow.begin(), narrow.end())).value();
  const std::vector<Tensor> expected = gradients(kLinear, narrow, dy);
  for (const DType weight : {DType::bf16, DType::f32}) {
    for (const DType bias : {DType::bf16, DType::f32}) {
      const std::vector inputs{x, narrow[1].to(weight), narrow[2].to(bias)};
      EXPECT_TRUE(identical(kLinear(std::vector<Var>(inputs.begin(), inputs.end())), y));
      const std::vector<Tensor> grads = gradients(kLinear, inputs, dy);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(grads[i].dtype(), inputs[i].dtype());
        EXPECT_TRUE(identical(grads[i].to(DType::bf16), expected[i]));
      }
      expect_composed_form(kLinear, inputs, 0x1p-6);
    }
  }
}

TEST(Linear, RejectsAnInputOfTheWrongSize) {
  EXPECT_THAT(
      [] {
        linear(zeros({256, 32}), zeros({1, 16}));
      },
      ThrowsMessage<ShapeError>(
          "linear: the last axis of x must have size 16 to match weight [1, 16] but x has shape [256, 32]"));
}

TEST(Linear, RejectsAWeightThatIsNoMatrix) {
  EXPECT_THAT(
      [] {
        linear(zeros({2, 3}), zeros({3}));
      },
      ThrowsMessage<ShapeError>("linear: weight must have shape [out, in] but has [3]"));
}

TEST(Linear, RejectsABiasOfTheWrongSize) {
  EXPECT_THAT(
      [] {
        linear(zeros({2, 3}), zeros({4, 3}), zeros({3}));
      },
      ThrowsMessage<ShapeError>("linear: bias must have shape [4] to match weight [4, 3] but has [3]"));
}

TEST(Linear, RejectsMixedDtypes) {
  EXPECT_THAT(
      [] {
        linear(zeros({2, 3}), zeros({4, 3}), zeros({4}, DType::f64));
      },
      ThrowsMessage<DTypeError>("linear: inputs must have the same dtype but have f32 and f64"));
}

}  // namespace
}  // namespace braid::op_tests::linear_test
