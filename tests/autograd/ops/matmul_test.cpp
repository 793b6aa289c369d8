#include <braid/autograd/ops/matmul.h>

#include <braid/autograd/ops/transpose.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::matmul_test {
namespace {

using ::testing::ThrowsMessage;

/// a [m, k], b [k, n] -> [m, n], by the definition.
Tensor naive_product(const Tensor& a, const Tensor& b) {
  Tensor c = zeros({a.size(0), b.size(1)}, a.dtype());
  for (std::int64_t i = 0; i < a.size(0); ++i)
    for (std::int64_t j = 0; j < b.size(1); ++j)
      for (std::int64_t p = 0; p < a.size(1); ++p)
        c.mutable_data<double>()[i * b.size(1) + j] += a.at({i, p}) * b.at({p, j});
  return c;
}

const auto kMatmul = [](std::span<const Var> x) { return matmul(x[0], x[1]); };

TEST(Matmul, MultipliesTwoMatrices) {
  const Tensor a = normal({5, 7}, 1), b = normal({7, 3}, 2);
  expect_close(matmul(a, b).value(), naive_product(a, b));
}

TEST(Matmul, BroadcastsTheLeadingAxes) {
  const Tensor a = normal({2, 1, 3, 4}, 1), b = normal({5, 4, 2}, 2);
  const Tensor c = matmul(a, b).value();
  ASSERT_EQ(c.shape(), (Shape{2, 5, 3, 2}));
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 5; ++j)
      expect_close(c.select(0, i).select(0, j), naive_product(a.select(0, i).select(0, 0), b.select(0, j)));
}

TEST(Matmul, ReadsTransposedOperands) {
  const Tensor a = normal({7, 5}, 1).transpose(), b = normal({3, 7}, 2).transpose();
  expect_close(matmul(a, b).value(), naive_product(a, b));
}

TEST(Matmul, GradientsOfBroadcastOperandsPassGradcheck) {
  expect_gradients(kMatmul, {normal({2, 3, 4}, 1), normal({4, 2}, 2)});
  expect_gradients(kMatmul, {normal({3, 4}, 1), normal({2, 4, 2}, 2)});
  expect_gradients(kMatmul, {normal({2, 1, 3, 4}, 1), normal({3, 4, 2}, 2)});
}

TEST(Matmul, GradientsOfStridedOperandsPassGradcheck) {
  expect_gradients([](auto x) { return matmul(transpose(x[0]), transpose(x[1])); },
                   {normal({4, 3}, 1), normal({2, 2, 4}, 2)});
}

TEST(Matmul, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads(kMatmul, {normal({7, 40, 50}, 1, DType::f32), normal({7, 50, 60}, 2, DType::f32)});
}

TEST(Matmul, SumsOverNoElementsAreZero) {
  expect_close(matmul(zeros({2, 0}), zeros({0, 3})).value(), zeros({2, 3}));
  EXPECT_EQ(matmul(zeros({0, 2}), zeros({2, 3})).shape(), (Shape{0, 3}));
}

TEST(Matmul, SkipsTheGradientOfAConstant) {
  Tape tape;
  const Var a = tape.watch(f64({1, 2}, {1, 2}));
  tape.backward(matmul(a, f64({2, 1}, {3, 4})));
  EXPECT_EQ(tape.gradient(a).to_vector<double>(), (std::vector<double>{3, 4}));
}

TEST(Matmul, RejectsInnerSizesThatDiffer) {
  EXPECT_THAT(
      [] {
        matmul(zeros({2, 3}), zeros({4, 5}));
      },
      ThrowsMessage<ShapeError>("matmul: the last axis of [2, 3] does not match the second-last axis of [4, 5]"));
}

TEST(Matmul, RejectsVectorsAndMixedDtypes) {
  EXPECT_THAT(
      [] {
        matmul(zeros({3}), zeros({3, 5}));
      },
      ThrowsMessage<ShapeError>("matmul: inputs must have at least 2 axes but have shapes [3] and [3, 5]"));
  EXPECT_THAT(
      [] {
        matmul(zeros({2, 3}), zeros({3, 5}, DType::f64));
      },
      ThrowsMessage<DTypeError>("matmul: inputs must have the same dtype but have f32 and f64"));
}

}  // namespace
}  // namespace braid::op_tests::matmul_test
