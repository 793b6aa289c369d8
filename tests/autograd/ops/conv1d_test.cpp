#include <braid/autograd/ops/conv1d.h>

#include <tests/autograd/ops/support.h>
#include <cmath>
#include <string>

#include <braid/autograd/ops/linear.h>

namespace braid::op_tests::conv1d_test {
namespace {

using ::testing::ThrowsMessage;

/// By the definition, tap by tap.
Tensor naive(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dSettings& s) {
  const std::int64_t length = x.size(1), out = weight.size(0), in = weight.size(1), taps = weight.size(2);
  const std::int64_t reach = s.dilation * (taps - 1), front = s.causal ? reach : s.padding;
  const std::int64_t positions = (length + front + (s.causal ? 0 : s.padding) - reach - 1) / s.stride + 1;
  Tensor y({x.size(0), positions, out}, DType::f64);
  double* to = y.mutable_data<double>();
  for (const auto& at : indices(y.shape())) {
    double sum = bias.defined() ? bias.at({at[2]}) : 0;
    for (std::int64_t k = 0; k < taps; ++k)
      for (std::int64_t c = 0; c < in; ++c) {
        const std::int64_t position = at[1] * s.stride + k * s.dilation - front;
        const std::int64_t channel = at[2] / (out / s.groups) * in + c;
        if (0 <= position && position < length) sum += weight.at({at[2], c, k}) * x.at({at[0], position, channel});
      }
    *to++ = sum;
  }
  return y;
}

struct Case {
  std::string name;
  Shape x, weight;
  Conv1dSettings settings = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Conv1d : public ::testing::TestWithParam<Case> {
 protected:
  Tensor x = normal(GetParam().x, 1), weight = normal(GetParam().weight, 2), bias = normal({weight.size(0)}, 3);
  Conv1dSettings settings = GetParam().settings;
};

TEST_P(Conv1d, MatchesTheDefinition) {
  expect_close(conv1d(x, weight, settings).value(), naive(x, weight, {}, settings));
  expect_close(conv1d(x, weight, bias, settings).value(), naive(x, weight, bias, settings));
  expect_close(conv1d(x.to(DType::f32), weight.to(DType::f32), bias.to(DType::f32), settings).value().to(DType::f64),
               naive(x, weight, bias, settings), 1e-5);
}

TEST_P(Conv1d, ReadsAnyLayout) {
  const Tensor turned = x.transpose(0, 2).clone().transpose(0, 2), taps_first = weight.transpose(0, 2).clone();
  expect_close(conv1d(turned, taps_first.transpose(0, 2), bias, settings).value(), naive(x, weight, bias, settings));
}

TEST_P(Conv1d, WithChannelsFirstIsThatOfTheTranspose) {
  Conv1dSettings first = settings;
  first.channels = Channels::first;
  const auto turned = [&](auto v) { return conv1d(v[0], v[1], v[2], first); };
  const Tensor y = conv1d(x, weight, bias, settings).value(), in = x.transpose().clone();
  EXPECT_TRUE(identical(conv1d(in, weight, bias, first).value().transpose(), y));
  const std::vector<Tensor> grads = gradients(turned, {in, weight, bias}, ones(y.transpose().shape(), y.dtype()));
  const std::vector<Tensor> expected = gradients([&](auto v) { return conv1d(v[0], v[1], v[2], settings); },
                                                 {x, weight, bias}, ones(y.shape(), y.dtype()));
  EXPECT_TRUE(identical(grads[0].transpose(), expected[0]));
  for (const std::size_t i : {1, 2}) EXPECT_TRUE(identical(grads[i], expected[i]));
}

TEST_P(Conv1d, GradientsPassGradcheck) {
  expect_gradients([&](auto v) { return conv1d(v[0], v[1], v[2], settings); }, {x, weight, bias});
  expect_gradients([&](auto v) { return conv1d(v[0], v[1], settings); }, {x, weight});
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Conv1d,
    ::testing::Values(
        Case{"one_tap", {2, 4, 3}, {5, 3, 1}}, Case{"plain", {2, 5, 3}, {2, 3, 3}},
        Case{"all_of_x", {1, 3, 2}, {2, 2, 3}}, Case{"padded", {2, 5, 3}, {2, 3, 3}, {.padding = 2}},
        Case{"more_padding_than_taps", {1, 2, 2}, {3, 2, 1}, {.padding = 3}},
        Case{"strided", {2, 8, 3}, {2, 3, 3}, {.stride = 2, .padding = 1}},
        Case{"stride_beyond_the_taps", {2, 8, 2}, {2, 2, 2}, {.stride = 3}},
        Case{"dilated", {2, 8, 2}, {3, 2, 3}, {.dilation = 2, .padding = 1}},
        Case{"groups", {2, 5, 6}, {4, 3, 2}, {.groups = 2}},
        Case{"all_settings", {2, 9, 4}, {6, 2, 3}, {.stride = 2, .dilation = 2, .groups = 2, .padding = 3}},
        Case{"causal", {2, 5, 3}, {4, 3, 3}, {.causal = true}},
        Case{"causal_strided", {2, 7, 2}, {3, 2, 3}, {.stride = 2, .dilation = 2, .causal = true}},
        Case{"causal_shorter_than_the_taps", {1, 2, 2}, {3, 2, 4}, {.causal = true}},
        Case{"depthwise", {2, 6, 5}, {5, 1, 4}, {.groups = 5}},
        Case{"depthwise_causal", {2, 6, 5}, {5, 1, 4}, {.groups = 5, .causal = true}},
        Case{"depthwise_all_settings", {2, 9, 3}, {3, 1, 3}, {.stride = 2, .dilation = 2, .groups = 3, .padding = 3}},
        Case{"depthwise_twice_the_outputs", {2, 6, 3}, {6, 1, 2}, {.groups = 3}},
        Case{"one_channel", {2, 6, 1}, {1, 1, 3}, {.causal = true}}),
    [](const auto& tested) { return tested.param.name; });

/// From torch.nn.functional.conv1d 2.15 in f64 on transposed x: the first elements of y, and the sums of the sizes of
/// the gradients of x, weight and bias.
struct Recorded {
  Case convolution;
  std::vector<double> y;
  double dx, dweight, dbias;
};

TEST(Conv1dOfPyTorch, GivesTheSame) {
  const std::vector<Recorded> recorded = {
      {{"", {2, 5, 3}, {2, 3, 3}},
       {-0.417024835958765, -0.123528334078495, 0.478792874668317, 0.776751402824816},
       18.0499644173998,
       28.2995111819535,
       1.25772938624287},
      {{"", {2, 5, 3}, {2, 3, 3}, {.stride = 2, .padding = 1}},
       {0.398418374680184, 0.683217740975356, 0.478792874668317, 0.776751402824816},
       22.4647093351825,
       5.78394968848639,
       1.25772938624287},
      {{"", {2, 6, 4}, {6, 2, 2}, {.dilation = 2, .groups = 2, .padding = 1}},
       {-1.31529796901919, 1.50309148764071, -0.395660835363037, 0.11621755648605},
       12.3792076402941,
       26.4958376304872,
       1.85355147797938},
      {{"", {2, 6, 3}, {3, 1, 4}, {.groups = 3, .causal = true}},
       {0.0, -0.531185160810749, 1.46318130573027, 0.121816112778842},
       9.19581967554448,
       17.6345841436229,
       2.21662535564259},
      {{"", {2, 6, 2}, {4, 1, 3}, {.stride = 2, .dilation = 2, .groups = 2, .padding = 2}},
       {-0.745790814655791, 0.560993828689013, 0.343274008763702, 0.388583562941316},
       15.4449099746144,
       3.11996221641528,
       0.510823415262416}};
  for (const auto& [convolution, y, dx, dweight, dbias] : recorded) {
    const Tensor x = wave(convolution.x, 1), weight = wave(convolution.weight, 0.7);
    const Tensor bias = wave({weight.size(0)}, 0.3);
    const auto f = [&](auto v) { return conv1d(v[0], v[1], v[2], convolution.settings); };
    const Tensor actual = conv1d(x, weight, bias, convolution.settings).value();
    expect_close(actual.reshape({-1}).slice(0, 0, 4), Tensor::of<double>({4}, std::span(y)), 1e-13);
    const std::vector<Tensor> grads = gradients(f, {x, weight, bias}, wave(actual.shape(), 1.3));
    EXPECT_NEAR(sum_of_sizes(grads[0]), dx, 1e-12);
    EXPECT_NEAR(sum_of_sizes(grads[1]), dweight, 1e-12);
    EXPECT_NEAR(sum_of_sizes(grads[2]), dbias, 1e-12);
  }
}

TEST(Conv1dCausal, SeesNothingBehindItsPosition) {
  const Tensor x = normal({1, 9, 4}, 1);
  for (const Tensor& weight : {normal({4, 4, 3}, 2), normal({4, 1, 3}, 2)}) {
    const Conv1dSettings settings{.dilation = 2, .groups = 4 / weight.size(1), .causal = true};
    const Tensor all = conv1d(x, weight, settings).value();
    for (std::int64_t length = 0; length <= 9; ++length)
      expect_close(conv1d(x.slice(1, 0, length), weight, settings).value(), all.slice(1, 0, length));
  }
}

TEST(Conv1dEdges, OneTapIsLinear) {
  const Tensor x = normal({2, 5, 3}, 1), weight = normal({4, 3}, 2), bias = normal({4}, 3);
  expect_close(conv1d(x, weight.expand_dims(2), bias).value(), linear(x, weight, bias).value());
}

TEST(Conv1dEdges, TakeEmptyBatchesSequencesAndChannels) {
  const auto run = [](const Shape& x, const Shape& weight, const Conv1dSettings& settings = {}) {
    Tape tape;
    const Var in = tape.watch(zeros(x)), w = tape.watch(zeros(weight)), b = tape.watch(zeros({weight[0]}));
    const Var y = conv1d(in, w, b, settings);
    tape.backward(y, ones(y.shape()));
    EXPECT_EQ(tape.gradient(in).shape(), x);
    EXPECT_EQ(tape.gradient(w).shape(), weight);
    return y.shape();
  };
  EXPECT_EQ(run({0, 5, 3}, {2, 3, 2}), (Shape{0, 4, 2}));
  EXPECT_EQ(run({0, 5, 3}, {3, 1, 2}, {.groups = 3}), (Shape{0, 4, 3}));
  EXPECT_EQ(run({2, 0, 3}, {2, 3, 2}), (Shape{2, 0, 2}));
  EXPECT_EQ(run({2, 0, 3}, {3, 1, 4}, {.groups = 3, .causal = true}), (Shape{2, 0, 3}));
  EXPECT_EQ(run({2, 5, 0}, {2, 0, 2}), (Shape{2, 4, 2}));
  EXPECT_EQ(run({2, 5, 3}, {0, 3, 2}), (Shape{2, 4, 0}));
  EXPECT_EQ(run({std::int64_t{1} << 40, 5, 0}, {0, 0, 2}), (Shape{std::int64_t{1} << 40, 4, 0}));
}

TEST(Conv1dEdges, GiveTheSameBitsForAnyNumberOfThreads) {
  for (const Conv1dSettings& settings : {Conv1dSettings{.causal = true}, Conv1dSettings{.groups = 40, .padding = 1}})
    expect_same_bits_on_any_threads(
        [&](auto v) { return conv1d(v[0], v[1], v[2], settings); },
        {normal({3, 700, 40}, 1, DType::f32), normal({40, 40 / settings.groups, 4}, 2, DType::f32),
         normal({40}, 3, DType::f32)});
}

TEST(Conv1dErrors, BeginOnePositionBeyondX) {
  for (const std::int64_t taps : {1, 2, 3, 6})
    for (const std::int64_t dilation : {1, 2, 3})
      for (const std::int64_t padding : {0, 1, 2}) {
        const std::int64_t length = dilation * (taps - 1) + 1 - 2 * padding;
        if (length < 2) continue;
        const Conv1dSettings settings{.dilation = dilation, .padding = padding};
        EXPECT_EQ(conv1d(zeros({1, length, 2}), zeros({3, 2, taps}), settings).shape(), Shape({1, 1, 3}));
        EXPECT_EQ(message_of([&] {
                    conv1d(zeros({1, length - 1, 2}), zeros({3, 2, taps}), settings);
                  }),
                  fmt::format("conv1d: {} taps {} apart reach over more than the {} positions of x", taps, dilation,
                              length - 1 + 2 * padding));
      }
}

TEST(Conv1dErrors, NameWhatDoesNotFit) {
  const auto message = [](const Shape& x, const Shape& weight, const Conv1dSettings& settings = {}) {
    return message_of([&] { conv1d(zeros(x), zeros(weight), settings); });
  };
  EXPECT_EQ(message({2, 5}, {2, 3, 2}), "conv1d: x must have shape [B, T, C] but has [2, 5]");
  EXPECT_EQ(message({2, 5, 3}, {2, 3}),
            "conv1d: weight must have shape [out, in / groups, K] with at least one tap but has [2, 3]");
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 0}),
            "conv1d: weight must have shape [out, in / groups, K] with at least one tap but has [2, 3, 0]");
  EXPECT_EQ(message({2, 5, 3}, {2, 4, 2}),
            "conv1d: weight must have shape [out, 3, K] to match the 3 channels of x in 1 groups but has [2, 4, 2]");
  EXPECT_EQ(message({2, 5}, {2, 3, 2}, {.channels = Channels::first}),
            "conv1d: x must have shape [B, C, T] but has [2, 5]");
  EXPECT_EQ(message({2, 5, 4}, {3, 2, 2}, {.groups = 2}),
            "conv1d: 2 groups must divide the 4 channels of x and the 3 outputs");
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 3}, {.dilation = 3}),
            "conv1d: 3 taps 3 apart reach over more than the 5 positions of x");
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 3}, {.stride = 0}), "conv1d: stride must lie in [1, 2^31) but is 0");
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 3}, {.dilation = std::int64_t{1} << 31}),
            "conv1d: dilation must lie in [1, 2^31) but is 2147483648");
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 3}, {.padding = -1}), "conv1d: padding must lie in [0, 2^31) but is -1");
  EXPECT_EQ(message({2, 5, 3}, {2, 3, 3}, {.padding = 1, .causal = true}),
            "conv1d: causal takes no other padding but it is 1");
  EXPECT_THAT(
      [] {
        conv1d(zeros({2, 5, 3}), zeros({2, 3, 2}), zeros({3}));
      },
      ThrowsMessage<ShapeError>("conv1d: bias must have shape [2] to match weight [2, 3, 2] but has [3]"));
  EXPECT_THAT(
      [] {
        conv1d(zeros({2, 5, 3}), zeros({2, 3, 2}, DType::f64));
      },
      ThrowsMessage<DTypeError>("conv1d: inputs must have the same dtype but have f32 and f64"));
}

}  // namespace
}  // namespace braid::op_tests::conv1d_test
