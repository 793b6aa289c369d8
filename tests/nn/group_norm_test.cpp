#include <braid/nn/group_norm.h>

#include <gtest/gtest.h>

#include <braid/autograd/ops/group_norm.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::group_norm_test {
namespace {

using testing::ElementsAre;

TEST(GroupNorm, NormalizesItsGroupsWithItsParameters) {
  Rng rng(1);
  GroupNorm norm(2, 6, {.eps = 1e-3, .dtype = DType::f64});
  norm.weight = randn({6}, rng, DType::f64);
  norm.bias = randn({6}, rng, DType::f64);
  const Tensor x = randn({3, 6, 4}, rng, DType::f64);
  expect_close(norm(x).value(), group_norm(x, 2, norm.weight, norm.bias, 1e-3).value());
}

TEST(GroupNorm, NamesItsParametersAndTrainsThem) {
  Rng rng(2);
  const Tensor x = randn({3, 6, 4}, rng, DType::f64);
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
}  // namespace braid::nn::group_norm_test
