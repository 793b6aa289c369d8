#include <braid/autograd/ops/nonzero.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::nonzero_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

TEST(Nonzero, ListsPositionsRowMajor) {
  const Tensor x = f64({2, 3}, {0, 1, kNaN, -2, -0.0, 3});
  const Tensor ids = nonzero(x);
  EXPECT_EQ(ids.dtype(), DType::i32);
  EXPECT_EQ(ids.shape(), (Shape{4, 2}));
  EXPECT_THAT(ids.to_vector<int>(), ElementsAre(0, 1, 0, 2, 1, 0, 1, 2));
  EXPECT_THAT(nonzero(x.transpose()).to_vector<int>(), ElementsAre(0, 1, 1, 0, 2, 0, 2, 1));
}

TEST(Nonzero, TakesEveryDtype) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32})
    EXPECT_THAT(nonzero(f64({3}, {5, 0, -1}).to(dtype)).to_vector<int>(), ElementsAre(0, 2));
}

TEST(Nonzero, OfScalarsAndOfNothing) {
  EXPECT_EQ(nonzero(scalar(2)).shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(scalar(0)).shape(), (Shape{0, 0}));
  EXPECT_EQ(nonzero(zeros({2, 3})).shape(), (Shape{0, 2}));
  EXPECT_EQ(nonzero(zeros({0, 3})).shape(), (Shape{0, 2}));
}

TEST(Nonzero, OnATapeIsAConstant) {
  Tape tape;
  EXPECT_EQ(nonzero(tape.watch(f64({2}, {0, 4}))).item(), 1);
}

TEST(Nonzero, RejectsAnAxisThatI32CannotNumber) {
  EXPECT_THAT([] { nonzero(zeros({1}).broadcast_to({(std::int64_t{1} << 31) + 1})); },
              ThrowsMessage<ShapeError>("nonzero: an axis of x [2147483649] is too long for i32"));
}

}  // namespace
}  // namespace braid::op_tests::nonzero_test
