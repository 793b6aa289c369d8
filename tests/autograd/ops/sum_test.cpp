#include <braid/autograd/ops/sum.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::sum_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Sum, AddsAlongTheGivenAxes) {
  expect_values(sum(kX), {}, {21});
  expect_values(sum(kX, {0}), {3}, {5, 7, 9});
  expect_values(sum(kX, {-1}), {2}, {6, 15});
  expect_values(sum(kX, {1}, true), {2, 1}, {6, 15});
  expect_values(sum(kX, {0, 1}, true), {1, 1}, {21});
}

TEST(Sum, TakesOneAxisAsANumber) {
  expect_values(sum(kX, 0), {3}, {5, 7, 9});
  expect_values(sum(kX, -1, true), {2, 1}, {6, 15});
  expect_values(mean(kX, 1), {2}, {2, 5});
  expect_gradients([](auto x) { return sum(x[0], 1); }, {normal({2, 3, 4})});
}

TEST(Sum, AddsAlongAllAxesWhenTheListIsEmpty) {
  expect_values(sum(kX, {}), {}, {21});
  expect_values(sum(kX, {}, true), {1, 1}, {21});
}

TEST(Sum, AddsAlongAxesThatAreApart) {
  const Tensor x = normal({3, 4, 5});
  Tensor expected = zeros({4}, DType::f64);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      for (std::int64_t k = 0; k < 5; ++k) expected.mutable_data<double>()[j] += x.at({i, j, k});
  expect_close(sum(x, {0, 2}).value(), expected);
}

TEST(Sum, OverNothingIsZero) { expect_values(sum(zeros({0, 2}, DType::f64), {0}), {2}, {0, 0}); }

TEST(Sum, RejectsAnAxisThatIsNotThere) {
  EXPECT_THAT([] { sum(kX, {2}); }, ThrowsMessage<ShapeError>("sum: x [2, 3] has no axis 2"));
  EXPECT_THAT([] { sum(kX, {0, -2}); }, ThrowsMessage<ShapeError>("sum: axis -2 of shape [2, 3] is given twice"));
}

TEST(Sum, OfIntegersIsExactOrAnError) {
  const Tensor x = i32({2, 2}, {2147483647, -1, -3, 2147483647});
  expect_values(sum(x, 1), {2}, {2147483646, 2147483644});
  EXPECT_EQ(sum(x, 1).dtype(), DType::i32);
  EXPECT_THAT([&] { sum(x); }, ThrowsMessage<ValueError>("sum: the sum 4294967290 does not fit i32"));
}

TEST(Mean, DividesBySize) {
  expect_values(mean(kX), {}, {3.5});
  expect_values(mean(kX, {0}), {3}, {2.5, 3.5, 4.5});
  expect_values(mean(kX, {1}, true), {2, 1}, {2, 5});
}

TEST(Mean, OverNothingIsNaN) { EXPECT_TRUE(std::isnan(mean(zeros({0})).item())); }

TEST(Mean, ErrorsNameIt) {
  EXPECT_THAT([] { mean(kX, 2); }, ThrowsMessage<ShapeError>("mean: x [2, 3] has no axis 2"));
  EXPECT_THAT([] { mean(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("mean: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::sum_test
