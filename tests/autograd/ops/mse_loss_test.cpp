#include <braid/autograd/ops/mse_loss.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::mse_loss_test {
namespace {

using ::testing::ThrowsMessage;

const auto kMseLoss = [](std::span<const Var> x) { return mse_loss(x[0], x[1]); };

TEST(MseLoss, IsTheMeanOfTheSquaredErrors) {
  const Tensor prediction = f64({2, 2}, {1, 2, 3, 4}), target = f64({2, 2}, {1, 4, 0, 3});
  EXPECT_DOUBLE_EQ(mse_loss(prediction, target).item(), 14.0 / 4);
  EXPECT_FLOAT_EQ(static_cast<float>(mse_loss(prediction.to(DType::f32), target.to(DType::f32)).item()), 3.5f);
}

TEST(MseLoss, IsReducedAsAsked) {
  const Tensor prediction = f64({2, 2}, {1, 2, 3, 4}), target = f64({2, 2}, {1, 4, 0, 3});
  expect_close(mse_loss(prediction, target, Reduction::none).value(), f64({2, 2}, {0, 4, 9, 1}));
  EXPECT_DOUBLE_EQ(mse_loss(prediction, target, Reduction::sum).item(), 14);
  EXPECT_DOUBLE_EQ(mse_loss(prediction, target, Reduction::batch_mean).item(), 7);
}

TEST(MseLoss, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return mse_loss(x[0], x[1], Reduction::none); },
                   {normal({2, 3}, 1), normal({2, 3}, 2)});
  expect_gradients(kMseLoss, {normal({2, 3}, 1), normal({2, 3}, 2)});
  expect_gradients(kMseLoss, {normal({}, 1), normal({}, 2)});
  expect_gradients(kMseLoss, {normal({9, 1000}, 1), normal({9, 1000}, 2)});
}

TEST(MseLoss, IsZeroWithoutElements) {
  EXPECT_EQ(mse_loss(normal({0, 3}), normal({0, 3})).item(), 0);
  EXPECT_EQ(gradients(kMseLoss, {normal({0, 3}), normal({0, 3})}, scalar(1, DType::f64))[0].shape(), (Shape{0, 3}));
}

TEST(MseLoss, RejectsShapesThatDiffer) {
  EXPECT_THAT(
      [] {
        mse_loss(normal({4, 1}), normal({4}));
      },
      ThrowsMessage<ShapeError>("mse_loss: target must have shape [4, 1] to match prediction but has [4]"));
  EXPECT_THAT([] { mse_loss(normal({4}), normal({4}, 0, DType::f32)); }, ::testing::Throws<DTypeError>());
}

}  // namespace
}  // namespace braid::op_tests::mse_loss_test
