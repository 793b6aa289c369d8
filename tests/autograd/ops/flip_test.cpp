#include <braid/autograd/ops/flip.h>

#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/softmax.h>
#include <braid/autograd/ops/transpose.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::flip_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Flip, ReversesAxes) {
  expect_values(flip(kX, 0), {2, 3}, {4, 5, 6, 1, 2, 3});
  expect_values(flip(kX, -1), {2, 3}, {3, 2, 1, 6, 5, 4});
  expect_values(flip(kX, {}), {2, 3}, {6, 5, 4, 3, 2, 1});
  expect_values(flip(flip(kX, {0, 1}), {1, 0}), {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(flip(zeros({0, 3}), {}).shape(), (Shape{0, 3}));
  EXPECT_EQ(flip(scalar(3), {}).item(), 3);
}

TEST(Flip, IsAViewThatOpsTakeAsAnyOther) {
  const Var view = flip(normal({40, 50}), {0, 1}), copy = view.value().clone();
  EXPECT_FALSE(view.value().is_contiguous());
  expect_close(softmax(view).value(), softmax(copy).value(), 0);
  expect_close(matmul(view, transpose(view)).value(), matmul(copy, transpose(copy)).value(), 1e-14);
  expect_close(view.value().reshape({100, 20}), copy.value().reshape({100, 20}), 0);
}

TEST(Flip, TheGradientIsFlippedBack) {
  const auto grads = gradients([](auto x) { return flip(x[0], 1); }, {kX}, kX);
  expect_values(grads[0], {2, 3}, {3, 2, 1, 6, 5, 4});
  expect_gradients([](auto x) { return flip(x[0], {0, 2}); }, {normal({2, 3, 4})});
}

TEST(Flip, RejectsAxesThatAreNotThere) {
  EXPECT_THAT([] { flip(kX, 2); }, ThrowsMessage<ShapeError>("flip: x [2, 3] has no axis 2"));
  EXPECT_THAT([] { flip(kX, {1, -1}); }, ThrowsMessage<ShapeError>("flip: axis -1 of shape [2, 3] is given twice"));
}

}  // namespace
}  // namespace braid::op_tests::flip_test
