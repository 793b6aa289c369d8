#include <braid/nn/norm.h>

#include <gtest/gtest.h>

#include <braid/autograd/ops/group_norm.h>
#include <braid/autograd/ops/sqrt.h>
#include <braid/autograd/ops/sum.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::norm_test {
namespace {

using testing::ElementsAre;

TEST(RMSNorm, DividesByTheRootMeanSquare) {
  Rng rng(1);
  RMSNorm norm(4, {.dtype = DType::f64});
  norm.weight = randn({4}, rng, DType::f64);
  const Var x = randn({3, 4}, rng, DType::f64);
  expect_close(norm(x).value(), (x * rsqrt(mean(x * x, {-1}, true) + 1e-5) * norm.weight).value());
}

TEST(LayerNorm, SubtractsTheMeanAndDividesByTheDeviation) {
  Rng rng(2);
  LayerNorm norm(4, {.eps = 1e-3, .dtype = DType::f64});
  norm.weight = randn({4}, rng, DType::f64);
  norm.bias = randn({4}, rng, DType::f64);
  const Var x = randn({3, 4}, rng, DType::f64);
  const Var centered = x - mean(x, {-1}, true);
  expect_close(norm(x).value(),
               (centered * rsqrt(mean(centered * centered, {-1}, true) + 1e-3) * norm.weight + norm.bias).value());
}

TEST(Norm, IsOneOfTheTwo) {
  Rng rng(4);
  const Tensor x = randn({3, 4}, rng, DType::f64);
  RMSNorm rms(4, {.eps = 1e-3, .dtype = DType::f64});
  LayerNorm layer(4, {.eps = 1e-3, .dtype = DType::f64});
  rms.weight = layer.weight = randn({4}, rng, DType::f64);
  layer.bias = randn({4}, rng, DType::f64);
  EXPECT_TRUE(identical(Norm(rms)(x).value(), rms(x).value()));
  EXPECT_TRUE(identical(Norm(layer)(x).value(), layer(x).value()));
  EXPECT_THAT(parameter_names(Norm(NormKind::rms, 4)), ElementsAre("weight"));
  EXPECT_THAT(parameter_names(Norm(NormKind::layer, 4)), ElementsAre("weight", "bias"));
  EXPECT_EQ(Norm(NormKind::layer, 4, {.eps = 0.5}).eps, 0.5);
}

TEST(Norms, NameTheirParametersAndTrainThem) {
  Rng rng(3);
  const Tensor x = randn({3, 4}, rng, DType::f64);
  const RMSNorm rms(4, {.dtype = DType::f64});
  const LayerNorm layer(4, {.dtype = DType::f64});
  EXPECT_THAT(parameter_names(rms), ElementsAre("weight"));
  EXPECT_THAT(parameter_names(layer), ElementsAre("weight", "bias"));
  expect_gradients(rms, [&](const RMSNorm& m) { return m(x); });
  expect_gradients(layer, [&](const LayerNorm& m) { return m(x); });
}

TEST(Norms, StartAsPlainNormalization) {
  EXPECT_THAT(RMSNorm(2).weight.value().to_vector<float>(), ElementsAre(1, 1));
  EXPECT_THAT(LayerNorm(2).weight.value().to_vector<float>(), ElementsAre(1, 1));
  EXPECT_THAT(LayerNorm(2).bias.value().to_vector<float>(), ElementsAre(0, 0));
}

TEST(Norms, RejectBadSettings) {
  expect_error<ValueError>([] { RMSNorm(0); }, "RMSNorm: channels must be at least 1 but is 0");
  expect_error<ValueError>([] { LayerNorm(0); }, "LayerNorm: channels must be at least 1 but is 0");
  expect_error<ValueError>([] { RMSNorm(2, {.eps = -1}); }, "RMSNorm: eps must be at least 0 but is -1");
  expect_error<ValueError>([] { LayerNorm(2, {.eps = -1}); }, "LayerNorm: eps must be at least 0 but is -1");
}

TEST(GroupNorm, NormalizesItsGroupsWithItsParameters) {
  Rng rng(1);
  GroupNorm norm(2, 6, {.eps = 1e-3, .dtype = DType::f64});
  norm.weight = randn({6}, rng, DType::f64);
  norm.bias = randn({6}, rng, DType::f64);
  const Tensor x = randn({3, 4, 6}, rng, DType::f64);
  expect_close(norm(x).value(), group_norm(x, 2, norm.weight, norm.bias, 1e-3).value());
  norm.order = Channels::first;
  expect_close(norm(x.transpose()).value(),
               group_norm(x.transpose(), 2, norm.weight, norm.bias, 1e-3, Channels::first).value());
  EXPECT_EQ(GroupNorm(2, 6, {.channels = Channels::first}).order, Channels::first);
  EXPECT_EQ(GroupNorm(2, 6).eps, 1e-5);
}

TEST(GroupNorm, NamesItsParametersAndTrainsThem) {
  Rng rng(2);
  const Tensor x = randn({3, 4, 6}, rng, DType::f64);
  const GroupNorm norm(3, 6, {.dtype = DType::f64});
  EXPECT_THAT(parameter_names(norm), ElementsAre("weight", "bias"));
  EXPECT_THAT(norm.weight.value().to_vector<double>(), testing::Each(1));
  EXPECT_THAT(norm.bias.value().to_vector<double>(), testing::Each(0));
  expect_gradients(norm, [&](const GroupNorm& m) { return m(x); });
}

TEST(GroupNorm, RejectsBadSettings) {
  expect_error<ValueError>([] { GroupNorm(1, 0); }, "GroupNorm: channels must be at least 1 but is 0");
  expect_error<ValueError>([] { GroupNorm(4, 6); }, "GroupNorm: groups must divide the 6 channels but is 4");
  expect_error<ValueError>([] { GroupNorm(2, 6, {.eps = -1}); }, "GroupNorm: eps must be at least 0 but is -1");
}

}  // namespace
}  // namespace braid::nn::norm_test
