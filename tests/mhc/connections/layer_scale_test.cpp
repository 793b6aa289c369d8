#include <braid/mhc/connections/layer_scale.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/core/parallel.h>
#include <braid/mhc/streams/telemetry.h>
#include <tests/mhc/support.h>

namespace braid::mhc::layer_scale_test {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

LayerScale make(std::int64_t factors, std::uint64_t seed = 1) {
  Rng rng(seed);
  LayerScale connection(factors, 0.1, DType::f64);
  randomize(connection, rng);
  return connection;
}

TEST(LayerScale, ScalesTheLayersOutputByChannelOrAsAWhole) {
  const Var x = Tensor::of<double>({2, 2}, {1, 2, 3, 4});
  const auto square = [](const Var& h) { return h * h; };
  LayerScale connection(2, 0, DType::f64);
  connection.scale = Tensor::of<double>({2}, {10, -1});
  EXPECT_THAT(connection(x, square).value().to_vector<double>(), ElementsAre(11, -2, 93, -12));
  connection.scale = Tensor::of<double>({1}, {2});
  EXPECT_THAT(connection(x, square).value().to_vector<double>(), ElementsAre(3, 10, 21, 36));
}

TEST(LayerScale, HasRightGradients) {
  for (const std::int64_t channels : {1, 2, 5})
    for (const std::int64_t factors : {std::int64_t{1}, channels})
      for (const Shape& lead : {Shape{}, Shape{1}, Shape{2, 3}}) {
        Rng rng(2);
        expect_right_gradients(make(factors), random(lead.concat({channels}), rng), channels);
      }
}

TEST(LayerScale, StartsWithEqualFactors) {
  for (const double value : LayerScale(3).scale.value().to_vector<float>()) EXPECT_FLOAT_EQ(value, 0.1);
  Rng rng(3);
  const Var x = random({2, 4}, rng);
  const auto layer = [](const Var& h) { return tanh(h); };
  const Var y = LayerScale(4, 1, DType::f64)(x, layer);
  EXPECT_TRUE(identical(y.value(), ResidualConnection()(x, layer).value()));
  EXPECT_TRUE(identical(LayerScale(1, 0, DType::f64)(x, layer).value(), x.value()));
}

TEST(LayerScale, LearnsItsFactorFromZeroBeforeTheLayer) {
  Rng rng(4);
  LayerScale connection(1, 0, DType::f64);
  WholeLayer<LayerScale> whole{random({3, 4}, rng), connection, TestLayer(4, rng)};
  const auto step = value_and_grad([](const auto& w) { return sum(w() * w()); });
  const auto first = step(whole).second;
  EXPECT_GT(std::abs(first.connection.scale.item()), 1e-3);
  EXPECT_EQ(largest_difference(first.layer.up.value(), zeros({5, 4}, DType::f64)), 0);
  whole.connection.scale = whole.connection.scale - 0.1 * first.connection.scale;
  EXPECT_GT(largest_difference(step(whole).second.layer.up.value(), zeros({5, 4}, DType::f64)), 1e-6);
}

TEST(LayerScale, ShowsAHookTheResidualConnectionAroundTheScaledLayer) {
  struct Doubled : Telemetry {
    Var write(const Var& f) override { return 2 * f; }
  };
  Rng rng(5);
  const LayerScale connection = make(4);
  const Var x = random({2, 4}, rng);
  const auto layer = [](const Var& h) { return tanh(h); };
  const Var y = connection(x, layer);
  Doubled hook;
  EXPECT_LT(largest_difference(connection(x, layer).value(), (2 * y - x).value()), 1e-15);
  ASSERT_EQ(hook.connections().size(), 1);
  EXPECT_EQ(hook.connections()[0].composed_forward_gain, 1);
}

TEST(LayerScale, KeepsFactorsAndTheirGradientsInF32ForActivationsOfBF16) {
  Rng rng(6);
  const Tensor x = randn({3, 4}, rng).to(DType::bf16);
  Tape tape;
  LayerScale connection(4);
  connection.scale = tape.watch(Tensor::of<float>({4}, {1.0009765625F, 1, 0.5F, 0}));
  const Var y = connection(x, [&](const Var& h) { return h; });
  EXPECT_EQ(y.dtype(), DType::bf16);
  tape.backward(sum(cast(y, DType::f32)));
  const Tensor grad = tape.gradient(connection.scale);
  EXPECT_EQ(grad.dtype(), DType::f32);
  EXPECT_LT(largest_difference(grad.to(DType::f64), sum(Var(x.to(DType::f64)), 0).value()), 1e-6);
}

TEST(LayerScale, NamesItsParameters) { EXPECT_THAT(param_names(LayerScale(4)), ElementsAre("scale")); }

TEST(LayerScale, TakesNoTokens) {
  EXPECT_EQ(make(4)(Var(zeros({0, 4}, DType::f64)), [](const Var& h) { return h; }).shape(), Shape({0, 4}));
}

TEST(LayerScale, RefusesWhatDoesNotFit) {
  EXPECT_THAT([] { LayerScale(0); },
              ThrowsMessage<ValueError>("LayerScale: factors must be >= 1 and initial finite but they are 0 and 0.1"));
  EXPECT_THAT([] { LayerScale(4, NAN); },
              ThrowsMessage<ValueError>("LayerScale: factors must be >= 1 and initial finite but they are 4 and nan"));
  const auto same = [](const Var& h) { return h; };
  EXPECT_THAT(
      [&] {
        LayerScale(4)(Var(zeros({2, 1})), same);
      },
      ThrowsMessage<ShapeError>(
          "LayerScale: layer must keep the shape [2, 1], which scale [4] must fit, but returned [2, 1]"));
  EXPECT_THAT(
      [&] {
        LayerScale(4)(Var(zeros({2, 4})), [](const Var& h) { return select(h, 0, 0); });
      },
      ThrowsMessage<ShapeError>(
          "LayerScale: layer must keep the shape [2, 4], which scale [4] must fit, but returned [4]"));
}

}  // namespace
}  // namespace braid::mhc::layer_scale_test
