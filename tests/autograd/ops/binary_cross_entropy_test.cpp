#include <braid/autograd/ops/binary_cross_entropy.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

#include <braid/core/reduce.h>

namespace braid::op_tests::binary_cross_entropy_test {
namespace {

using ::testing::ThrowsMessage;

/// By the definition, in long double.
double reference(double x, double z, double w) {
  const long double p = 1 / (1 + std::exp(static_cast<long double>(-x)));
  const long double q = 1 / (1 + std::exp(static_cast<long double>(x)));
  return static_cast<double>(-(w * z * std::log(p) + (1 - z) * std::log(q)));
}

/// In [0, 1), and its ends.
Tensor targets_of(const Shape& shape) {
  Rng rng(7);
  Tensor z = rand(shape, rng, DType::f64);
  double* values = z.mutable_data<double>();
  for (std::int64_t i = 0; i < z.numel(); i += 3) values[i] = std::round(values[i]);
  return z;
}

TEST(BinaryCrossEntropy, MatchesTheDefinition) {
  const Tensor x = normal({4, 5}, 1), z = targets_of({4, 5}), w = f64({5}, {1, 0.5, 2, 3, 0});
  Tensor expected(x.shape(), DType::f64);
  for (std::int64_t i = 0; i < 20; ++i)
    expected.mutable_data<double>()[i] = reference(x.data<double>()[i], z.data<double>()[i], w.data<double>()[i % 5]);
  const auto loss = [&](Reduction reduction) { return binary_cross_entropy_with_logits(x, z, reduction, w).value(); };
  expect_close(loss(Reduction::none), expected, 1e-14);
  const double sum = reduce_sum(expected).item();
  EXPECT_NEAR(loss(Reduction::sum).item(), sum, 1e-13);
  EXPECT_NEAR(loss(Reduction::mean).item(), sum / 20, 1e-14);
  EXPECT_NEAR(loss(Reduction::batch_mean).item(), sum / 4, 1e-14);
  const Tensor single =
      binary_cross_entropy_with_logits(x.to(DType::f32), z.to(DType::f32), Reduction::none, w.to(DType::f32)).value();
  expect_close(single.to(DType::f64), expected, 1e-6);
}

TEST(BinaryCrossEntropy, IsPreciseForLogitsOfAnySize) {
  const auto loss = [](double x, double z) {
    return binary_cross_entropy_with_logits(scalar(x, DType::f64), scalar(z, DType::f64)).item();
  };
  EXPECT_EQ(loss(1000, 0), 1000);
  EXPECT_EQ(loss(-1000, 1), 1000);
  EXPECT_NEAR(loss(-50, 0) / std::exp(-50), 1, 1e-14);
  EXPECT_NEAR(loss(50, 1) / std::exp(-50), 1, 1e-14);
  const auto slope = [](double x, double z) {
    const auto f = [=](auto v) { return binary_cross_entropy_with_logits(v[0], scalar(z, DType::f64)); };
    return gradients(f, {scalar(x, DType::f64)}, scalar(1, DType::f64))[0].item();
  };
  EXPECT_NEAR(slope(-50, 0) / std::exp(-50), 1, 1e-14);
  EXPECT_NEAR(slope(50, 1) / -std::exp(-50), 1, 1e-14);
  EXPECT_EQ(slope(-1000, 1), -1);
}

TEST(BinaryCrossEntropy, GradientsPassGradcheck) {
  const Tensor w = f64({3, 1}, {1, 0.5, 2});
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none, Reduction::batch_mean}) {
    expect_gradients([=](auto x) { return binary_cross_entropy_with_logits(x[0], x[1], reduction); },
                     {normal({3, 4}, 1), targets_of({3, 4})});
    expect_gradients([=](auto x) { return binary_cross_entropy_with_logits(x[0], x[1], reduction, w); },
                     {normal({2, 3, 4}, 1), targets_of({2, 3, 4})});
  }
}

TEST(BinaryCrossEntropy, OfNothingIsZero) {
  EXPECT_EQ(binary_cross_entropy_with_logits(zeros({0, 3}), zeros({0, 3})).item(), 0);
  EXPECT_EQ(binary_cross_entropy_with_logits(zeros({0, 3}), zeros({0, 3}), Reduction::none).shape(), (Shape{0, 3}));
}

TEST(BinaryCrossEntropy, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto f = [](auto x) { return binary_cross_entropy_with_logits(x[0], x[1]); };
  expect_same_bits_on_any_threads(f, {normal({90, 1000}, 1, DType::f32), normal({90, 1000}, 2, DType::f32)});
}

TEST(BinaryCrossEntropy, RejectsWhatDoesNotFit) {
  const auto loss = [](const Tensor& x, const Tensor& z, const Tensor& w = {}) {
    return binary_cross_entropy_with_logits(x, z, Reduction::mean, w);
  };
  EXPECT_THAT(
      [&] {
        loss(zeros({2, 3}), zeros({3}));
      },
      ThrowsMessage<ShapeError>("binary_cross_entropy_with_logits: targets must have shape [2, 3] to match "
                                "logits but have [3]"));
  EXPECT_THAT([&] { loss(zeros({2}), zeros({2}, DType::f64)); },
              ThrowsMessage<DTypeError>(
                  "binary_cross_entropy_with_logits: inputs must have the same dtype but have f32 and f64"));
  EXPECT_THAT([&] { loss(zeros({2}), zeros({2}), ones({2}, DType::f64)); },
              ThrowsMessage<DTypeError>(
                  "binary_cross_entropy_with_logits: inputs must have the same dtype but have f32 and f64"));
  EXPECT_THAT([&] { loss(zeros({2}, DType::i32), zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>(
                  "binary_cross_entropy_with_logits: expected a floating-point tensor but has dtype i32"));
  EXPECT_THAT(
      [&] {
        loss(zeros({3}), zeros({3}), zeros({2, 3}));
      },
      ThrowsMessage<ShapeError>(
          "binary_cross_entropy_with_logits: positive_weight [2, 3] must broadcast to logits [3]"));
}

}  // namespace
}  // namespace braid::op_tests::binary_cross_entropy_test
