#include <braid/autograd/ops/group_norm.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

#include <braid/autograd/ops/layer_norm.h>

namespace braid::op_tests::group_norm_test {
namespace {

using ::testing::ThrowsMessage;

constexpr Channels kFirst = Channels::first;

/// By the definition. x [B, C, T]
Tensor by_definition(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const std::int64_t width = x.size(1) / groups;
  Tensor y(x.shape(), DType::f64);
  double* to = y.mutable_data<double>();
  for (const auto& at : indices(x.shape())) {
    const std::vector<double> group =
        x.select(0, at[0]).slice(0, at[1] / width * width, (at[1] / width + 1) * width).to_vector<double>();
    double mean = 0, variance = 0;
    for (const double v : group) mean += v / static_cast<double>(group.size());
    for (const double v : group) variance += (v - mean) * (v - mean) / static_cast<double>(group.size());
    const double normalized = (x.at({at[0], at[1], at[2]}) - mean) / std::sqrt(variance + eps);
    *to++ = normalized * weight.at({at[1]}) + bias.at({at[1]});
  }
  return y;
}

TEST(GroupNorm, MatchesTheDefinition) {
  for (const std::int64_t groups : {1, 2, 3, 6}) {
    const Tensor x = normal({2, 6, 5}, 1), weight = normal({6}, 2), bias = normal({6}, 3);
    const Tensor expected = by_definition(x, groups, weight, bias, 1e-3);
    expect_close(group_norm(x, groups, weight, bias, 1e-3, kFirst).value(), expected, 1e-13);
    const Tensor turned = x.transpose(0, 2).clone().transpose(0, 2);
    expect_close(group_norm(turned, groups, weight, bias, 1e-3, kFirst).value(), expected, 1e-13);
    const Var single = group_norm(x.to(DType::f32), groups, weight.to(DType::f32), bias.to(DType::f32), 1e-3, kFirst);
    expect_close(single.value().to(DType::f64), expected, 1e-5);
    expect_close(group_norm(x.reshape({2, 6, 5, 1}), groups, 1e-5, kFirst).value().reshape(x.shape()),
                 by_definition(x, groups, ones({6}), zeros({6}), 1e-5), 1e-13);
  }
}

TEST(GroupNorm, WithChannelsLastIsThatOfTheTranspose) {
  const Tensor x = normal({2, 5, 3, 6}, 1), weight = normal({6}, 2), bias = normal({6}, 3), dy = normal(x.shape(), 4);
  const Tensor first = x.permute({0, 3, 1, 2});
  for (const std::int64_t groups : {1, 2, 3, 6}) {
    expect_close(group_norm(x, groups, 1e-3).value().permute({0, 3, 1, 2}),
                 group_norm(first, groups, 1e-3, kFirst).value(), 1e-13);
    expect_close(group_norm(x.transpose(1, 2).clone().transpose(1, 2), groups, weight, bias).value(),
                 group_norm(x, groups, weight, bias).value(), 1e-13);
    const std::vector<Tensor> last =
        gradients([=](auto v) { return group_norm(v[0], groups, v[1], v[2]); }, {x, weight, bias}, dy);
    const std::vector<Tensor> expected =
        gradients([=](auto v) { return group_norm(v[0], groups, v[1], v[2], 1e-5, kFirst); }, {first, weight, bias},
                  dy.permute({0, 3, 1, 2}));
    expect_close(last[0].permute({0, 3, 1, 2}), expected[0]);
    for (const std::size_t i : {1, 2}) expect_close(last[i], expected[i]);
  }
}

TEST(GroupNorm, OfOneGroupOfChannelsAloneIsLayerNorm) {
  const Tensor x = normal({4, 6}, 1), weight = normal({6}, 2), bias = normal({6}, 3);
  expect_close(group_norm(x, 1, weight, bias).value(), layer_norm(x, weight, bias).value());
}

TEST(GroupNorm, GradientsPassGradcheck) {
  for (const std::int64_t groups : {1, 2, 6})
    for (const auto& [channels, shape] : {std::pair(kFirst, Shape{2, 6, 3}), std::pair(Channels::last, Shape{2, 3, 6})})
      expect_gradients([=](auto x) { return group_norm(x[0], groups, x[1], x[2], 1e-3, channels); },
                       {normal(shape, 1), normal({6}, 2), normal({6}, 3)});
  for (const Channels channels : {kFirst, Channels::last})
    expect_gradients([=](auto x) { return group_norm(x[0], 2, 1e-3, channels); }, {normal({2, 4, 3, 4}, 1)});
}

// sin(i), sin(0.7 i), sin(0.3 i) in torch.nn.functional.group_norm 2.15, f64, for the cotangent sin(1.3 i): the sums of
// the sizes of the gradients.
TEST(GroupNorm, HasTheGradientsOfPyTorch) {
  const auto wave = [](const Shape& shape, double frequency) {
    return map(
        "wave", [=](auto i) { return std::sin(static_cast<decltype(i)>(frequency) * i); },
        arange(shape.numel(), DType::f64).reshape(shape));
  };
  const auto f = [](auto x) { return group_norm(x[0], 3, x[1], x[2], 1e-3, kFirst); };
  const std::vector<Tensor> grads =
      gradients(f, {wave({2, 6, 4}, 1), wave({6}, 0.7), wave({6}, 0.3)}, wave({2, 6, 4}, 1.3));
  const double expected[] = {20.2934114573846, 16.8012124240067, 6.74387156387117};
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (const double v : grads[i].to_vector<double>()) sum += std::abs(v);
    EXPECT_NEAR(sum, expected[i], 1e-11);
  }
}

TEST(GroupNorm, TakesEmptyBatchesAndAxes) {
  for (const Channels channels : {kFirst, Channels::last}) {
    const auto shape = [=](std::int64_t batch, std::int64_t count, std::int64_t positions) {
      return channels == kFirst ? Shape{batch, count, positions} : Shape{batch, positions, count};
    };
    for (const Shape& x : {shape(0, 4, 3), shape(2, 4, 0)})
      EXPECT_EQ(group_norm(zeros(x), 2, ones({4}), zeros({4}), 1e-5, channels).shape(), x);
    for (const std::int64_t groups : {std::int64_t{2}, std::int64_t{1} << 62}) {
      EXPECT_EQ(group_norm(zeros(shape(2, 0, 3)), groups, 1e-5, channels).shape(), shape(2, 0, 3));
      EXPECT_EQ(group_norm(zeros(shape(2, 0, 3)), groups, ones({0}), ones({0}), 1e-5, channels).shape(),
                shape(2, 0, 3));
    }
  }
}

TEST(GroupNorm, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const auto& [channels, shape] :
       {std::pair(kFirst, Shape{20, 8, 300}), std::pair(Channels::last, Shape{20, 300, 8})})
    expect_same_bits_on_any_threads(
        [=](auto x) { return group_norm(x[0], 4, x[1], x[2], 1e-5, channels); },
        {normal(shape, 1, DType::f32), normal({8}, 2, DType::f32), normal({8}, 3, DType::f32)});
}

TEST(GroupNorm, RejectsWhatDoesNotFit) {
  const Tensor x = zeros({2, 3, 6});
  EXPECT_THAT([] { group_norm(zeros({6}), 2); },
              ThrowsMessage<ShapeError>("group_norm: x must have shape [B, ..., C] but has [6]"));
  EXPECT_THAT([] { group_norm(zeros({6}), 2, 1e-5, kFirst); },
              ThrowsMessage<ShapeError>("group_norm: x must have shape [B, C, ...] but has [6]"));
  EXPECT_THAT([&] { group_norm(x, 4); },
              ThrowsMessage<ValueError>("group_norm: groups must divide the 6 channels of x [2, 3, 6] but is 4"));
  EXPECT_THAT([&] { group_norm(x, 2, 1e-5, kFirst); },
              ThrowsMessage<ValueError>("group_norm: groups must divide the 3 channels of x [2, 3, 6] but is 2"));
  EXPECT_THAT([&] { group_norm(x, 0); },
              ThrowsMessage<ValueError>("group_norm: groups must divide the 6 channels of x [2, 3, 6] but is 0"));
  EXPECT_THAT([&] { group_norm(x, 2, ones({3}), zeros({6})); },
              ThrowsMessage<ShapeError>("group_norm: weight must have shape [6] to match x [2, 3, 6] but has [3]"));
  EXPECT_THAT([&] { group_norm(x, 2, ones({6}), zeros({6}, DType::f64)); },
              ThrowsMessage<DTypeError>("group_norm: inputs must have the same dtype but have f32 and f64"));
}

}  // namespace
}  // namespace braid::op_tests::group_norm_test
