#include <braid/autograd/ops/one_hot.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::one_hot_test {
namespace {

using ::testing::ThrowsMessage;

TEST(OneHot, HasAOneAtEachId) {
  expect_values(one_hot(i32({2, 2}, {2, 0, 1, 1}), 3), {2, 2, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0});
  expect_values(one_hot(i32({2, 2}, {2, 0, 1, 1}).transpose(), 3), {2, 2, 3}, {0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0});
  expect_values(one_hot(i32({}, {1}), 2), {2}, {0, 1});
}

TEST(OneHot, HasTheDtypeAskedFor) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32})
    EXPECT_EQ(one_hot(i32({1}, {0}), 1, dtype).dtype(), dtype);
}

TEST(OneHot, OfNothingIsEmpty) {
  EXPECT_EQ(one_hot(i32({0}, {}), 5).shape(), (Shape{0, 5}));
  EXPECT_EQ(one_hot(i32({0}, {}), 0).shape(), (Shape{0, 0}));
}

TEST(OneHot, RejectsIdsThatAreNoClass) {
  EXPECT_THAT(
      [] {
        one_hot(i32({2}, {0, 3}), 3);
      },
      ThrowsMessage<ValueError>("one_hot: ids must lie in [0, 3) but the one at [1] is 3"));
  EXPECT_THAT([] { one_hot(i32({1}, {-1}), 3); },
              ThrowsMessage<ValueError>("one_hot: ids must lie in [0, 3) but the one at [0] is -1"));
  EXPECT_THAT([] { one_hot(zeros({1}), 3); },
              ThrowsMessage<DTypeError>("one_hot: ids must have dtype i32 but have f32"));
  EXPECT_THAT(
      [] {
        one_hot(zeros({1, 1, 1, 1, 1, 1, 1, 1}, DType::i32), 3);
      },
      ThrowsMessage<ShapeError>("one_hot: ids must have at most 7 axes but have shape [1, 1, 1, 1, 1, 1, 1, 1]"));
  EXPECT_THAT([] { one_hot(i32({0}, {}), -1); },
              ThrowsMessage<ValueError>("one_hot: classes must not be negative but are -1"));
}

}  // namespace
}  // namespace braid::op_tests::one_hot_test
