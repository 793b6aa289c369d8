#include <braid/autograd/ops/argmax.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::argmax_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 5, 3, 4, -2, 6});

TEST(ArgMax, FindsTheLargestElement) {
  EXPECT_THAT(argmax(kX, 1).to_vector<int>(), ElementsAre(1, 2));
  EXPECT_THAT(argmax(kX, 0).to_vector<int>(), ElementsAre(1, 0, 1));
  EXPECT_EQ(argmax(kX, 0).dtype(), DType::i32);
  EXPECT_EQ(argmax(kX, -1).shape(), Shape{2});
  EXPECT_EQ(argmax(kX, -1, true).shape(), (Shape{2, 1}));
}

TEST(ArgMin, FindsTheSmallestElement) {
  EXPECT_THAT(argmin(kX, 1).to_vector<int>(), ElementsAre(0, 1));
  EXPECT_THAT(argmin(kX, 0, true).to_vector<int>(), ElementsAre(0, 1, 0));
}

TEST(ArgMax, TakesTheFirstOfEquals) {
  EXPECT_EQ(argmax(f64({5}, {0, 7, -kInfinity, 7, 7}), 0).item(), 1);
  EXPECT_EQ(argmin(f64({4}, {3, -0.0, 0, 1}), 0).item(), 1);
  EXPECT_EQ(argmax(f64({2}, {-kInfinity, -kInfinity}), 0).item(), 0);
}

TEST(ArgMax, TakesTheFirstNaNIfThereIsOne) {
  for (const auto choose : {argmax, argmin}) {
    EXPECT_EQ(choose(f64({4}, {1, kNaN, kInfinity, kNaN}), 0, false).item(), 1);
    EXPECT_EQ(choose(f64({3}, {kNaN, -kInfinity, 2}), 0, false).item(), 0);
    EXPECT_EQ(choose(f64({3}, {-kInfinity, kInfinity, kNaN}), 0, false).item(), 2);
  }
}

TEST(ArgMax, TakesIntegersAndF32) {
  EXPECT_EQ(argmax(i32({3}, {-2147483647 - 1, 2147483647, 3}), 0).item(), 1);
  EXPECT_EQ(argmin(i32({3}, {5, -2147483647 - 1, 3}), 0).item(), 1);
  EXPECT_EQ(argmax(kX.to(DType::f32), 1).at({1}), 2);
}

TEST(ArgMax, MatchesANaiveLoopAlongEveryAxis) {
  Rng rng(1);
  for (const Shape& shape : {Shape{3, 5, 4}, Shape{1, 20000, 2}, Shape{70, 3, 90}}) {
    const Tensor x = randint(0, 50, shape, rng).to(DType::f64).transpose(0, 1);
    for (const int axis : {0, 1, 2}) {
      const Tensor high = argmax(x, axis), low = argmin(x, axis);
      for (auto index : indices(high.shape())) {
        std::vector<double> row;
        const double found_high = at(high, index), found_low = at(low, index);
        index.insert(index.begin() + axis, 0);
        for (std::int64_t i = 0; i < x.size(axis); ++i) {
          index[static_cast<std::size_t>(axis)] = i;
          row.push_back(at(x, index));
        }
        ASSERT_EQ(found_high, std::ranges::max_element(row) - row.begin());
        ASSERT_EQ(found_low, std::ranges::min_element(row) - row.begin());
      }
    }
  }
}

TEST(ArgMax, OnATapeIsAConstant) {
  Tape tape;
  EXPECT_EQ(argmax(tape.watch(kX), 1).at({0}), 1);
  EXPECT_EQ(tape.size(), 1);
}

TEST(ArgMax, RejectsAnAxisThatI32CannotNumber) {
  EXPECT_THAT([] { argmax(zeros({1}).broadcast_to({std::int64_t{1} << 31}), 0); },
              ThrowsMessage<ShapeError>("argmax: axis 0 of [2147483648] is too long for i32"));
}

TEST(ArgMax, RejectsAnEmptyChoice) {
  EXPECT_THAT(
      [] {
        argmax(zeros({2, 0}), 1);
      },
      ThrowsMessage<ShapeError>("argmax: shape [2, 0] has no elements to choose from"));
  EXPECT_EQ(argmax(zeros({2, 0}), 0).shape(), Shape{0});
  EXPECT_THAT([] { argmin(kX, 2); }, ThrowsMessage<ShapeError>("argmin: x [2, 3] has no axis 2"));
  EXPECT_THAT([] { argmax(scalar(1), 0); }, ThrowsMessage<ShapeError>("argmax: x [] has no axis 0"));
}

}  // namespace
}  // namespace braid::op_tests::argmax_test
