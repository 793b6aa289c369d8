#include <braid/autograd/ops/reshape.h>

#include <braid/autograd/ops/transpose.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::reshape_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Reshape, KeepsTheElementsInOrder) {
  expect_values(reshape(kX, {3, 2}), {3, 2}, {1, 2, 3, 4, 5, 6});
  expect_values(reshape(kX, Shape{6}), {6}, {1, 2, 3, 4, 5, 6});
  expect_values(reshape(kX.transpose(), {6}), {6}, {1, 4, 2, 5, 3, 6});
}

TEST(Reshape, InfersOneSize) { EXPECT_EQ(reshape(kX, {-1, 1, 2}).shape(), (Shape{3, 1, 2})); }

TEST(Reshape, SharesTheStorage) { EXPECT_EQ(reshape(kX, {6}).value().data<double>(), kX.data<double>()); }

TEST(Reshape, RejectsAShapeThatDoesNotFit) {
  EXPECT_THAT(
      [] {
        reshape(kX, {4, 2});
      },
      ThrowsMessage<ShapeError>("reshape: 6 elements of shape [2, 3] do not fit into shape [4, 2]"));
}

TEST(ExpandDims, AddsAnAxisOfSizeOne) {
  expect_values(expand_dims(kX, 0), {1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(expand_dims(kX, 1).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(expand_dims(kX, -1).shape(), (Shape{2, 3, 1}));
}

TEST(ExpandDims, RejectsAPlaceThatIsNotThere) {
  EXPECT_THAT([] { expand_dims(kX, 3); },
              ThrowsMessage<ShapeError>("expand_dims: shape [2, 3] has no place 3 for an axis"));
}

TEST(Squeeze, RemovesAnAxisOfSizeOne) {
  EXPECT_EQ(squeeze(zeros({2, 1, 3}), 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(zeros({2, 3, 1}), -1).shape(), (Shape{2, 3}));
}

TEST(Squeeze, RejectsALargerAxis) {
  EXPECT_THAT([] { squeeze(kX, 1); }, ThrowsMessage<ShapeError>("squeeze: axis 1 of shape [2, 3] must have size 1"));
}

}  // namespace
}  // namespace braid::op_tests::reshape_test
