#include <braid/autograd/ops/transpose.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::transpose_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Transpose, ExchangesTwoAxes) {
  expect_values(transpose(kX), {3, 2}, {1, 4, 2, 5, 3, 6});
  EXPECT_EQ(transpose(zeros({2, 3, 4}), 0, -1).shape(), (Shape{4, 3, 2}));
}

TEST(Transpose, RejectsAnAxisThatIsNotThere) {
  EXPECT_THAT([] { transpose(kX, 0, 2); }, ThrowsMessage<ShapeError>("transpose: x [2, 3] has no axis 2"));
}

TEST(Permute, PutsTheAxesInTheGivenOrder) {
  const Tensor x = normal({2, 3, 4});
  const Tensor y = permute(x, {2, 0, -2}).value();
  ASSERT_EQ(y.shape(), (Shape{4, 2, 3}));
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      for (std::int64_t k = 0; k < 4; ++k) EXPECT_EQ(y.at({k, i, j}), x.at({i, j, k}));
}

TEST(Permute, RejectsAxesThatAreNoPermutation) {
  EXPECT_THAT([] { permute(kX, {0}); },
              ThrowsMessage<ShapeError>("permute: expected 2 axes for shape [2, 3] but got 1"));
  EXPECT_THAT(
      [] {
        permute(kX, {1, -1});
      },
      ThrowsMessage<ShapeError>("permute: axis 1 of shape [2, 3] is given twice"));
}

}  // namespace
}  // namespace braid::op_tests::transpose_test
