#include <braid/core/shape.h>

#include <vector>

#include <gtest/gtest.h>

#include <tests/support.h>

namespace braid::shape_test {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{2, 3, 4}.numel()), 24);
  EXPECT_EQ((Shape{2, 0, 4}.numel()), 0);
}

TEST(Shape, CountsNegativeAxesFromTheEnd) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape.index(-2), 1);
}

TEST(Shape, RejectsAxesThatAreNotThere) {
  EXPECT_EQ(message_of([] { Shape({2, 3}).index(2); }), "Shape: x [2, 3] has no axis 2");
  EXPECT_EQ(message_of([] { Shape({2, 3}).index(-3); }), "Shape: x [2, 3] has no axis -3");
  EXPECT_EQ(message_of([] { Shape{}.index(0); }), "Shape: x [] has no axis 0");
  EXPECT_EQ(message_of([] { Shape({2, 3}).axes(1, 3); }), "Shape: [2, 3] has no axes [1, 3)");
}

TEST(Shape, RejectsNegativeSizesAndTooManyAxes) {
  EXPECT_EQ(message_of([] { Shape{2, -1}; }), "Shape: sizes must not be negative but got -1");
  EXPECT_EQ(message_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), "Shape: at most 8 axes are supported but got 9");
}

TEST(Shape, RejectsSizesWhoseProductOverflows) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THROW((Shape{large, large}), ShapeError);
  EXPECT_THROW((Shape{large, large, 0}), ShapeError);
  EXPECT_THROW((Shape{0, large, large}), ShapeError);
  for (const Shape& shape : {Shape{1 << 30, 1 << 29}, Shape{1, 1 << 30, 1, 1 << 29}})
    EXPECT_EQ(shape.numel(), std::int64_t{1} << 59);
  EXPECT_EQ(message_of([] { Shape{1 << 30, 1 << 30}; }), "Shape: [1073741824, 1073741824] has more than 2^59 elements");
}

TEST(Shape, ResizesInsertsAndRemovesAxes) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.with(-1, 7), (Shape{2, 3, 7}));
  EXPECT_EQ(shape.inserted(0, 7), (Shape{7, 2, 3, 4}));
  EXPECT_EQ(shape.inserted(3, 7), (Shape{2, 3, 4, 7}));
  EXPECT_EQ(shape.without(1), (Shape{2, 4}));
  EXPECT_EQ(shape.axes(1, 3), (Shape{3, 4}));
  EXPECT_EQ(shape.axes(1, 1), Shape{});
  EXPECT_EQ(Shape{}.concat({5}), Shape{5});
  EXPECT_EQ((Shape{2, 3}.concat(shape)), (Shape{2, 3, 2, 3, 4}));
}

TEST(Shape, ComparesRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
}

TEST(Shape, ReadsLikeAList) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{2, 0, 3}), "[2, 0, 3]");
  EXPECT_EQ(fmt::format("{}", Shape{5}), "[5]");
}

TEST(Shape, ContiguousStridesAreRowMajor) {
  const Strides strides = contiguous_strides({2, 3, 4});
  EXPECT_EQ(strides[0], 12);
  EXPECT_EQ(strides[1], 4);
  EXPECT_EQ(strides[2], 1);
}

TEST(Shape, BroadcastsAsNumpyDoes) {
  EXPECT_EQ(broadcast_shapes("add", {2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes("add", {}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes("add", {2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes("add", {1}, {0}), Shape{0});
  EXPECT_EQ(message_of([] { broadcast_shapes("add", {2, 3}, {2}); }), "add: shapes [2, 3] and [2] do not broadcast");
  EXPECT_EQ(message_of([] { broadcast_shapes("add", {2}, {0}); }), "add: shapes [2] and [0] do not broadcast");
}

}  // namespace
}  // namespace braid::shape_test
