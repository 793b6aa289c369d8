#include <braid/autograd/ops/matmul.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>
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

TEST(Matmul, TakesVectorsAsRowsAndColumns) {
  const Tensor a = normal({2, 5, 3, 4}, 1), b = normal({5, 4, 2}, 2), row = normal({4}, 3), column = normal({4}, 4);
  expect_close(matmul(a, column).value(), matmul(a, column.reshape({4, 1})).value().squeeze(-1));
  expect_close(matmul(row, b).value(), matmul(row.reshape({1, 4}), b).value().squeeze(-2));
  EXPECT_EQ(matmul(a, column).shape(), (Shape{2, 5, 3}));
  EXPECT_EQ(matmul(row, b).shape(), (Shape{5, 2}));
  const Var dot = matmul(row, column);
  EXPECT_EQ(dot.shape(), Shape{});
  EXPECT_NEAR(dot.item(), sum(row * column).item(), 1e-12);
  EXPECT_EQ(matmul(zeros({0}), zeros({0})).item(), 0);
  EXPECT_EQ(matmul(zeros({3, 0}), zeros({0})).shape(), Shape{3});
  EXPECT_EQ(matmul(zeros({4}), zeros({0, 4, 2})).shape(), (Shape{0, 2}));
}

TEST(Matmul, GradientsOfVectorsPassGradcheckInBothOrders) {
  for (const auto& [a, b] : {std::pair(Shape{2, 3, 4}, Shape{4}), std::pair(Shape{4}, Shape{2, 4, 3}),
                             std::pair(Shape{4}, Shape{4}), std::pair(Shape{3, 4}, Shape{4})}) {
    const std::vector<Tensor> inputs{normal(a, 1), normal(b, 2)};
    expect_gradients(kMatmul, inputs);
    EXPECT_TRUE(gradcheck(kMatmul, inputs, {.order = 2}));
  }
}

TEST(Matmul, RejectsVectorsThatDoNotFit) {
  const auto message = [](const Shape& a, const Shape& b) { return message_of([&] { matmul(zeros(a), zeros(b)); }); };
  EXPECT_EQ(message({3}, {2, 3}), "matmul: the last axis of [3] does not match the second-last axis of [2, 3]");
  EXPECT_EQ(message({2, 3}, {2}), "matmul: the last axis of [2, 3] does not match the only axis of [2]");
  EXPECT_EQ(message({}, {2}), "matmul: inputs must have at least 1 axis but have shapes [] and [2]");
}

TEST(Matmul, RejectsMixedDtypes) {
  EXPECT_THAT(
      [] {
        matmul(zeros({2, 3}), zeros({3, 5}, DType::f64));
      },
      ThrowsMessage<DTypeError>("matmul: inputs must have the same dtype but have f32 and f64"));
}

}  // namespace
}  // namespace braid::op_tests::matmul_test
