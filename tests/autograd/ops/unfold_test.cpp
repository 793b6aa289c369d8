#include <braid/autograd/ops/unfold.h>

#include <tests/autograd/ops/support.h>

#include <braid/autograd/ops/pool2d.h>
#include <braid/autograd/ops/transpose.h>

namespace braid::op_tests::unfold_test {
namespace {

/// The window of x [B, H, W, C] at (u, v), tap by tap, `fill` in the padding. -> [taps][C]
std::vector<std::vector<double>> window_at(const Tensor& x, std::int64_t b, std::int64_t u, std::int64_t v, Size2d size,
                                           const WindowSettings& s, double fill) {
  std::vector<std::vector<double>> taps;
  for (std::int64_t i = 0; i < size.h; ++i)
    for (std::int64_t j = 0; j < size.w; ++j) {
      std::vector<double>& tap = taps.emplace_back();
      for (std::int64_t c = 0; c < x.size(3); ++c) {
        const std::int64_t h = u * s.stride.h + i * s.dilation.h - s.padding.h;
        const std::int64_t w = v * s.stride.w + j * s.dilation.w - s.padding.w;
        const bool inside = h >= 0 && h < x.size(1) && w >= 0 && w < x.size(2);
        tap.push_back(inside ? x.at({b, h, w, c}) : fill);
      }
    }
  return taps;
}

struct Case {
  Size2d size;
  WindowSettings settings;
};

const std::vector<Case> kCases = {{1, {}},
                                  {2, {.stride = 2}},
                                  {{3, 2}, {.padding = {1, 1}}},
                                  {{2, 3}, {.stride = {3, 1}, .dilation = {2, 1}, .padding = 1}},
                                  {{4, 3}, {.stride = {1, 4}, .padding = {2, 1}}}};

TEST(Unfold, LaysOutTheTapsOfEachWindow) {
  const Tensor x = normal({2, 5, 6, 3}, 1);
  for (const auto& [size, settings] : kCases)
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      const Tensor in = x.to(dtype), y = unfold(in, size, settings).value();
      EXPECT_EQ(y.dtype(), dtype);
      for (const auto& at : indices({y.size(0), y.size(1), y.size(2), size.h * size.w, 3})) {
        const auto taps = window_at(in, at[0], at[1], at[2], size, settings, 0);
        EXPECT_EQ(y.at({at[0], at[1], at[2], at[3] * 3 + at[4]}),
                  taps[static_cast<std::size_t>(at[3])][static_cast<std::size_t>(at[4])]);
      }
    }
}

TEST(Unfold, HasGradients) {
  for (const auto& [size, settings] : kCases)
    expect_gradients([&](auto v) { return unfold(v[0], size, settings); }, {normal({2, 5, 6, 3}, 1)});
}

TEST(Unfold, WithChannelsFirstHasPyTorchsOrder) {
  const Tensor x = normal({2, 4, 5, 3}, 1), first = x.permute({0, 3, 1, 2}).clone();
  const Tensor y = unfold(x, {2, 3}, {.padding = 1}).value();
  const Tensor turned = unfold(first, {2, 3}, {.padding = 1, .channels = Channels::first}).value();
  ASSERT_EQ(turned.shape(), (Shape{2, 18, 5 * 5}));
  for (const auto& at : indices({2, 5, 5, 6, 3}))
    EXPECT_EQ(turned.at({at[0], at[4] * 6 + at[3], at[1] * 5 + at[2]}), y.at({at[0], at[1], at[2], at[3] * 3 + at[4]}));
}

TEST(Unfold, CutsAPictureIntoPatches) {
  const Tensor x = arange(16, DType::f64).reshape({1, 4, 4, 1});
  expect_values(unfold(x, 2, {.stride = 2}), {1, 2, 2, 4}, {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15});
}

TEST(Pool2d, TakesTheLargestAndTheMeanOfEachWindow) {
  const Tensor x = normal({2, 5, 6, 3}, 1);
  for (const auto& [size, settings] : kCases) {
    const Tensor largest = max_pool2d(x, size, settings).value(), mean = mean_pool2d(x, size, settings).value();
    ASSERT_EQ(largest.shape(), mean.shape());
    for (const auto& at : indices(largest.shape())) {
      double most = -kInfinity, sum = 0;
      for (const auto& tap : window_at(x, at[0], at[1], at[2], size, settings, -kInfinity))
        most = std::max(most, tap[static_cast<std::size_t>(at[3])]);
      for (const auto& tap : window_at(x, at[0], at[1], at[2], size, settings, 0))
        sum += tap[static_cast<std::size_t>(at[3])];
      EXPECT_EQ(braid::at(largest, at), most);
      EXPECT_NEAR(braid::at(mean, at), sum / static_cast<double>(size.h * size.w), 1e-14);
    }
  }
}

TEST(Pool2d, HasGradients) {
  for (const auto& [size, settings] : kCases) {
    expect_gradients([&](auto v) { return max_pool2d(v[0], size, settings); }, {normal({2, 5, 6, 2}, 1)});
    expect_gradients([&](auto v) { return mean_pool2d(v[0], size, settings); }, {normal({2, 5, 6, 2}, 1)});
  }
}

TEST(Pool2d, PutsWindowsSideBySideByDefaultAndTakesChannelsFirst) {
  const Tensor x = normal({2, 5, 6, 3}, 1), first = x.permute({0, 3, 1, 2}).clone();
  for (const auto pool : {static_cast<Var (*)(const Var&, Size2d, const WindowSettings&)>(max_pool2d),
                          static_cast<Var (*)(const Var&, Size2d, const WindowSettings&)>(mean_pool2d)}) {
    const Tensor y = pool(x, 2, {.stride = 2}).value();
    EXPECT_EQ(y.shape(), (Shape{2, 2, 3, 3}));
    expect_close(pool(first, 2, {.stride = 2, .channels = Channels::first}).value(), y.permute({0, 3, 1, 2}));
  }
  expect_close(max_pool2d(x, 2).value(), max_pool2d(x, 2, {.stride = 2}).value());
  expect_close(mean_pool2d(x, 2).value(), mean_pool2d(x, 2, {.stride = 2}).value());
}

TEST(Pool2d, SharesTheGradientAmongEqualElements) {
  Tape tape;
  const Var x = tape.watch(zeros({1, 2, 2, 1}, DType::f64));
  tape.backward(max_pool2d(x, 2));
  expect_close(tape.gradient(x), full({1, 2, 2, 1}, 0.25, DType::f64));
}

TEST(WindowErrors, NameWhatDoesNotFit) {
  EXPECT_EQ(message_of([] {
              unfold(zeros({2, 3, 4}), 2);
            }),
            "unfold: x must have shape [B, H, W, C] but has [2, 3, 4]");
  EXPECT_EQ(message_of([] {
              unfold(zeros({2, 3, 4}), 2, {.channels = Channels::first});
            }),
            "unfold: x must have shape [B, C, H, W] but has [2, 3, 4]");
  const Tensor x = zeros({1, 3, 4, 1});
  EXPECT_NO_THROW(unfold(x, {3, 4}));
  EXPECT_EQ(message_of([&] { unfold(x, {3, 5}); }), "unfold: 5 taps 1 apart reach over more than the 4 positions of x");
  EXPECT_EQ(message_of([&] { unfold(x, {0, 1}); }), "unfold: size must lie in [1, 2^31) but is 0");
  EXPECT_EQ(message_of([&] {
              mean_pool2d(x, 2, {.padding = {-1, 0}});
            }),
            "mean_pool2d: padding must lie in [0, 2^31) but is -1");
  EXPECT_NO_THROW(max_pool2d(x, 3, {.padding = 1}));
  EXPECT_THROW(max_pool2d(x, 3, {.padding = {2, 1}}), ValueError);
  EXPECT_EQ(message_of([&] {
              max_pool2d(x, 3, {.padding = {1, 2}});
            }),
            "max_pool2d: the padding must be at most half the window of 3 x 3 but is 1 and 2");
  EXPECT_THAT(
      [] {
        unfold(zeros({1, 3, 4, 1}, DType::i32), 2);
      },
      testing::ThrowsMessage<DTypeError>("unfold: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::unfold_test
