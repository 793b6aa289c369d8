#include <braid/autograd/ops/pad.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::pad_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kX = f64({2, 2}, {1, 2, 3, 4});

TEST(Pad, AddsPositionsAtTheEnds) {
  expect_values(pad(kX, 1, 2, 1), {2, 5}, {0, 0, 1, 2, 0, 0, 0, 3, 4, 0});
  expect_values(pad(kX, -2, 0, 1, 7), {3, 2}, {1, 2, 3, 4, 7, 7});
  expect_values(pad(pad(kX, 0, 1, 0), 1, 1, 0, -kInfinity), {3, 3},
                {-kInfinity, 0, 0, -kInfinity, 1, 2, -kInfinity, 3, 4});
  expect_values(pad(i32({1}, {5}), 0, 1, 1, -1), {3}, {-1, 5, -1});
  expect_values(pad(zeros({0}), 0, 1, 1, 3), {2}, {3, 3});
  expect_values(pad(kX.transpose(), 0, 0, 0), {2, 2}, {1, 3, 2, 4});
}

TEST(Pad, TheGradientIsThatOfWhatWasThere) {
  const auto grads =
      gradients([](auto x) { return pad(x[0], 1, 1, 1, 5); }, {kX}, f64({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  expect_values(grads[0], {2, 2}, {2, 3, 6, 7});
  for (const int axis : {0, 1, 2}) expect_gradients([=](auto x) { return pad(x[0], axis, 2, 1); }, {normal({2, 3, 4})});
}

TEST(Pad, RejectsBadCountsAndValues) {
  EXPECT_THAT([] { pad(kX, 0, -1, 0); },
              ThrowsMessage<ValueError>("pad: before and after must lie in [0, 2^59] but are -1 and 0"));
  EXPECT_THAT([] { pad(kX, 2, 1, 0); }, ThrowsMessage<ShapeError>("pad: x [2, 2] has no axis 2"));
  EXPECT_THAT([] { pad(kX, 0, 0, std::int64_t{1} << 59); }, ::testing::Throws<ShapeError>());
  EXPECT_THAT([] { pad(zeros({2}, DType::i32), 0, 0, 1, 0.5); },
              ThrowsMessage<ValueError>("pad: value must be an integer that fits i32 but is 0.5"));
}

}  // namespace
}  // namespace braid::op_tests::pad_test
