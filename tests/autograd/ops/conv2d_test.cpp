#include <braid/autograd/ops/conv2d.h>

#include <tests/autograd/ops/support.h>
#include <cmath>
#include <string>

#include <braid/autograd/ops/conv1d.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/reshape.h>

namespace braid::op_tests::conv2d_test {
namespace {

using ::testing::ThrowsMessage;

/// By the definition, tap by tap.
Tensor naive(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dSettings& s) {
  const std::int64_t out = weight.size(0), in = weight.size(1);
  const auto positions = [&](int axis, std::int64_t stride, std::int64_t dilation, std::int64_t padding) {
    return (x.size(1 + axis) + 2 * padding - dilation * (weight.size(2 + axis) - 1) - 1) / stride + 1;
  };
  Tensor y({x.size(0), positions(0, s.stride.h, s.dilation.h, s.padding.h),
            positions(1, s.stride.w, s.dilation.w, s.padding.w), out},
           DType::f64);
  double* to = y.mutable_data<double>();
  for (const auto& at : indices(y.shape())) {
    double sum = bias.defined() ? bias.at({at[3]}) : 0;
    for (const auto& tap : indices({weight.size(2), weight.size(3), in})) {
      const std::int64_t u = at[1] * s.stride.h + tap[0] * s.dilation.h - s.padding.h;
      const std::int64_t v = at[2] * s.stride.w + tap[1] * s.dilation.w - s.padding.w;
      if (u < 0 || u >= x.size(1) || v < 0 || v >= x.size(2)) continue;
      const std::int64_t channel = at[3] / (out / s.groups) * in + tap[2];
      sum += weight.at({at[3], tap[2], tap[0], tap[1]}) * x.at({at[0], u, v, channel});
    }
    *to++ = sum;
  }
  return y;
}

struct Case {
  std::string name;
  Shape x, weight;
  Conv2dSettings settings = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Conv2d : public ::testing::TestWithParam<Case> {
 protected:
  Tensor x = normal(GetParam().x, 1), weight = normal(GetParam().weight, 2), bias = normal({weight.size(0)}, 3);
  Conv2dSettings settings = GetParam().settings;
};

TEST_P(Conv2d, MatchesTheDefinition) {
  expect_close(conv2d(x, weight, settings).value(), naive(x, weight, {}, settings));
  expect_close(conv2d(x, weight, bias, settings).value(), naive(x, weight, bias, settings));
  expect_close(conv2d(x.to(DType::f32), weight.to(DType::f32), bias.to(DType::f32), settings).value().to(DType::f64),
               naive(x, weight, bias, settings), 1e-5);
}

TEST_P(Conv2d, WithChannelsFirstIsThatOfTheTranspose) {
  Conv2dSettings first = settings;
  first.channels = Channels::first;
  const Tensor in = x.permute({0, 3, 1, 2}).clone();
  EXPECT_TRUE(identical(conv2d(in, weight, bias, first).value().permute({0, 2, 3, 1}),
                        conv2d(x, weight, bias, settings).value()));
}

TEST_P(Conv2d, GradientsPassGradcheck) {
  expect_gradients([&](auto v) { return conv2d(v[0], v[1], v[2], settings); }, {x, weight, bias});
  expect_gradients([&](auto v) { return conv2d(v[0], v[1], settings); }, {x, weight});
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Conv2d,
    ::testing::Values(
        Case{"one_tap", {2, 3, 4, 3}, {5, 3, 1, 1}}, Case{"plain", {2, 4, 5, 3}, {2, 3, 3, 2}},
        Case{"all_of_x", {1, 3, 2, 2}, {2, 2, 3, 2}}, Case{"padded", {2, 4, 3, 2}, {2, 2, 3, 3}, {.padding = {2, 1}}},
        Case{"strided", {2, 6, 7, 2}, {2, 2, 3, 3}, {.stride = {2, 3}, .padding = 1}},
        Case{"stride_beyond_the_taps", {1, 7, 8, 2}, {2, 2, 2, 1}, {.stride = {3, 2}}},
        Case{"dilated", {1, 6, 7, 2}, {3, 2, 2, 3}, {.dilation = {3, 2}, .padding = {0, 1}}},
        Case{"groups", {2, 4, 3, 6}, {4, 3, 2, 2}, {.groups = 2}},
        Case{"all_settings",
             {2, 7, 6, 4},
             {6, 2, 2, 3},
             {.stride = {2, 1}, .dilation = {1, 2}, .padding = {1, 3}, .groups = 2}},
        Case{"stride_and_dilation_share_a_factor", {1, 9, 8, 2}, {2, 2, 3, 2}, {.stride = 4, .dilation = 2}},
        Case{"depthwise", {2, 4, 5, 3}, {3, 1, 3, 2}, {.groups = 3}},
        Case{"depthwise_all_settings",
             {2, 6, 5, 3},
             {3, 1, 3, 2},
             {.stride = 2, .dilation = {1, 2}, .padding = 1, .groups = 3}},
        Case{"depthwise_twice_the_outputs", {1, 4, 4, 3}, {6, 1, 2, 2}, {.groups = 3}},
        Case{"one_channel", {2, 5, 4, 1}, {1, 1, 3, 3}, {.padding = 1}},
        Case{"more_rows_than_a_block", {1, 19, 17, 2}, {3, 2, 3, 3}, {.padding = 1}}),
    [](const auto& tested) { return tested.param.name; });

/// From torch.nn.functional.conv2d 2.15 in f64 on x with channels first: the first elements of y, and the sums of the
/// sizes of the gradients of x, weight and bias.
struct Recorded {
  Case convolution;
  std::vector<double> y;
  double dx, dweight, dbias;
};

TEST(Conv2dOfPyTorch, GivesTheSame) {
  const std::vector<Recorded> recorded = {
      {{"", {2, 5, 6, 3}, {2, 3, 3, 2}},
       {0.320387763959557, 0.571939754735768, -0.527867740918195, -0.190616662873001},
       160.816921856699,
       146.356435963386,
       0.964921020988046},
      {{"", {2, 6, 5, 4}, {6, 2, 2, 3}, {.stride = {2, 1}, .dilation = {1, 2}, .padding = {1, 3}, .groups = 2}},
       {-0.682104884887984, 1.12970547223745, 0.380381470593037, 1.55322286279229},
       117.62165117764,
       320.986823250692,
       5.81802115132423},
      {{"", {1, 5, 4, 3}, {3, 1, 3, 2}, {.stride = 2, .padding = 1, .groups = 3}},
       {0.18822078006703, 0.724864334774681, -0.847593787746659, 0.379145049625812},
       22.8649937161146,
       17.2544418343513,
       1.70264477262322}};
  for (const auto& [convolution, y, dx, dweight, dbias] : recorded) {
    const Tensor x = wave(convolution.x, 1), weight = wave(convolution.weight, 0.7);
    const Tensor bias = wave({weight.size(0)}, 0.3);
    const auto f = [&](auto v) { return conv2d(v[0], v[1], v[2], convolution.settings); };
    const Tensor actual = conv2d(x, weight, bias, convolution.settings).value();
    expect_close(actual.reshape({-1}).slice(0, 0, 4), Tensor::of<double>({4}, std::span(y)), 1e-13);
    const std::vector<Tensor> grads = gradients(f, {x, weight, bias}, wave(actual.shape(), 1.3));
    EXPECT_NEAR(sum_of_sizes(grads[0]), dx, 1e-10);
    EXPECT_NEAR(sum_of_sizes(grads[1]), dweight, 1e-10);
    EXPECT_NEAR(sum_of_sizes(grads[2]), dbias, 1e-10);
  }
}

TEST(Conv2dEdges, OneTapIsLinearAndOneRowIsConv1d) {
  const Tensor x = normal({2, 3, 5, 4}, 1), weight = normal({6, 4}, 2), bias = normal({6}, 3);
  expect_close(conv2d(x, weight.reshape({6, 4, 1, 1}), bias).value(), linear(x, weight, bias).value());
  const Tensor line = normal({2, 9, 4}, 4), taps = normal({6, 2, 3}, 5);
  const Tensor y = conv2d(line.expand_dims(1), taps.expand_dims(2), bias,
                          {.stride = {1, 2}, .dilation = {1, 2}, .padding = {0, 1}, .groups = 2})
                       .value();
  const Tensor expected = conv1d(line, taps, bias, {.stride = 2, .dilation = 2, .groups = 2, .padding = 1}).value();
  EXPECT_TRUE(identical(y.squeeze(1), expected));
}

TEST(Conv2dEdges, TakeEmptyBatchesPicturesAndChannels) {
  const auto run = [](const Shape& x, const Shape& weight, const Conv2dSettings& settings = {}) {
    Tape tape;
    const Var in = tape.watch(zeros(x)), w = tape.watch(zeros(weight)), b = tape.watch(zeros({weight[0]}));
    const Var y = conv2d(in, w, b, settings);
    tape.backward(y, ones(y.shape()));
    EXPECT_EQ(tape.gradient(in).shape(), x);
    EXPECT_EQ(tape.gradient(w).shape(), weight);
    return y.shape();
  };
  EXPECT_EQ(run({0, 5, 4, 3}, {2, 3, 2, 2}), (Shape{0, 4, 3, 2}));
  EXPECT_EQ(run({2, 0, 4, 3}, {2, 3, 2, 2}), (Shape{2, 0, 3, 2}));
  EXPECT_EQ(run({2, 4, 0, 3}, {3, 1, 2, 2}, {.groups = 3}), (Shape{2, 3, 0, 3}));
  EXPECT_EQ(run({2, 5, 4, 0}, {2, 0, 2, 2}), (Shape{2, 4, 3, 2}));
  EXPECT_EQ(run({2, 5, 4, 3}, {0, 3, 2, 2}), (Shape{2, 4, 3, 0}));
  EXPECT_EQ(run({std::int64_t{1} << 40, 5, 4, 0}, {0, 0, 2, 2}), (Shape{std::int64_t{1} << 40, 4, 3, 0}));
  EXPECT_EQ(conv2d(zeros({1, 5, 4, 0}), zeros({2, 0, 2, 2}), ones({2})).value().at({0, 3, 2, 1}), 1);
}

TEST(Conv2dEdges, GiveTheSameBitsForAnyNumberOfThreads) {
  for (const Conv2dSettings& settings : {Conv2dSettings{.padding = 1}, Conv2dSettings{.stride = 2, .groups = 16}})
    expect_same_bits_on_any_threads(
        [&](auto v) { return conv2d(v[0], v[1], v[2], settings); },
        {normal({3, 40, 30, 16}, 1, DType::f32), normal({16, 16 / settings.groups, 3, 3}, 2, DType::f32),
         normal({16}, 3, DType::f32)});
}

TEST(Conv2dErrors, BeginOnePositionBeyondX) {
  const Tensor weight = zeros({1, 2, 3, 2});
  EXPECT_EQ(conv2d(zeros({1, 5, 3, 2}), weight, {.dilation = {2, 2}}).shape(), (Shape{1, 1, 1, 1}));
  EXPECT_EQ(message_of([&] {
              conv2d(zeros({1, 4, 3, 2}), weight, {.dilation = {2, 2}});
            }),
            "conv2d: 3 taps 2 apart reach over more than the 4 positions of x");
  EXPECT_EQ(message_of([&] {
              conv2d(zeros({1, 5, 2, 2}), weight, {.dilation = {2, 2}});
            }),
            "conv2d: 2 taps 2 apart reach over more than the 2 positions of x");
}

TEST(Conv2dErrors, NameWhatDoesNotFit) {
  const auto message = [](const Shape& x, const Shape& weight, const Conv2dSettings& settings = {}) {
    return message_of([&] { conv2d(zeros(x), zeros(weight), settings); });
  };
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 2, 2}), "conv2d: x must have shape [B, H, W, C] but has [2, 5, 3]");
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 2, 2}, {.channels = Channels::first}),
            "conv2d: x must have shape [B, C, H, W] but has [2, 5, 3]");
  EXPECT_EQ(message({2, 5, 5, 3}, {2, 3, 2}),
            "conv2d: weight must have shape [out, in / groups, K, L] but has [2, 3, 2]");
  EXPECT_EQ(message({2, 5, 5, 3}, {2, 3, 0, 2}), "conv2d: size must lie in [1, 2^31) but is 0");
  EXPECT_EQ(message({2, 5, 5, 3}, {2, 4, 2, 2}),
            "conv2d: weight must have shape [out, 3, K, L] to match the 3 channels of x in 1 groups but has "
            "[2, 4, 2, 2]");
  EXPECT_EQ(message({2, 5, 5, 4}, {3, 2, 2, 2}, {.groups = 2}),
            "conv2d: 2 groups must divide the 4 channels of x and the 3 outputs");
  EXPECT_EQ(message({2, 5, 5, 3}, {2, 3, 2, 2}, {.stride = {1, 0}}), "conv2d: stride must lie in [1, 2^31) but is 0");
  EXPECT_EQ(message({2, 5, 5, 3}, {2, 3, 2, 2}, {.dilation = {std::int64_t{1} << 31, 1}}),
            "conv2d: dilation must lie in [1, 2^31) but is 2147483648");
  for (const Size2d padding : {Size2d(0, -1), Size2d(-1, 0)})
    EXPECT_EQ(message({2, 5, 5, 3}, {2, 3, 2, 2}, {.padding = padding}),
              "conv2d: padding must lie in [0, 2^31) but is -1");
  for (const Size2d padding : {Size2d(0, std::int64_t{1} << 31), Size2d(std::int64_t{1} << 31, 0)})
    EXPECT_EQ(message({2, 5, 5, 3}, {2, 3, 2, 2}, {.padding = padding}),
              "conv2d: padding must lie in [0, 2^31) but is 2147483648");
  EXPECT_EQ(message({2, 5, 5, 3}, {2, 3, 2, 2}, {.groups = 0}), "conv2d: groups must lie in [1, 2^31) but is 0");
  EXPECT_THAT(
      [] {
        conv2d(zeros({2, 5, 5, 3}), zeros({2, 3, 2, 2}), zeros({3}));
      },
      ThrowsMessage<ShapeError>("conv2d: bias must have shape [2] to match weight [2, 3, 2, 2] but has [3]"));
}

}  // namespace
}  // namespace braid::op_tests::conv2d_test
