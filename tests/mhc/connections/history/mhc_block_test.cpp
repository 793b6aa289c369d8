#include <braid/mhc/connections/history/mhc_block.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/mhc/support.h>

namespace braid::mhc::mhc_block_test {
namespace {

using testing::ElementsAre;

std::vector<TestLayer> layers(int count, Rng& rng) {
  std::vector<TestLayer> list;
  for (int i = 0; i < count; ++i) list.emplace_back(3, rng);
  return list;
}

TEST(MHCBlock, ThreadsAHistoryThroughAStack) {
  Rng rng(1);
  const std::vector<TestLayer> list = layers(3, rng);
  const Tensor x0 = random({2, 3}, rng);
  const auto stack = wrap_layers(list, {.mode = SkipMode::hc, .init = SkipInit::uniform, .dtype = DType::f64});
  // Every state so far counts a quarter.
  const Var x1 = list[0](x0) + 0.25 * x0;
  const Var x2 = list[1](x1) + 0.25 * (x0 + x1);
  const Var x3 = list[2](x2) + 0.25 * (x0 + x1 + x2);
  EXPECT_LT(largest_difference(stack(x0).value(), x3.value()), 1e-14);
  EXPECT_TRUE(identical(stack(x0).value(), stack(x0).value()));  // each call starts anew
}

TEST(MHCBlock, IsNearlyAResidualStackAtTheStart) {
  Rng rng(1);
  const std::vector<TestLayer> list = layers(3, rng);
  const auto stack = wrap_layers(list, {.dtype = DType::f64});
  Var x = random({2, 3}, rng);
  const Var y = stack(x);
  for (const TestLayer& layer : list) x = x + layer(x);
  EXPECT_LT(largest_difference(y.value(), x.value()), 1e-2);
}

TEST(MHCBlock, PassesGradcheckAndKeepsTheLayersParametersVisible) {
  Rng rng(1);
  auto stack = wrap_layers(layers(2, rng), {.mode = SkipMode::mhc, .dtype = DType::f64});
  EXPECT_THAT(param_names(stack),
              ElementsAre("blocks.0.layer.up", "blocks.0.layer.down", "blocks.0.skip.mixing_logits",
                          "blocks.1.layer.up", "blocks.1.layer.down", "blocks.1.skip.mixing_logits"));
  randomize(stack, rng);
  const Tensor x = random({2, 3}, rng);
  const GradcheckResult result = gradcheck_module(stack, [&](const auto& m) { return m(x); });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(MHCBlock, DetachesTheHistoryWhenAskedTo) {
  Rng rng(1);
  const std::vector<TestLayer> list = layers(1, rng);
  const Tensor x = random({2, 3}, rng);
  const auto through_layer = vjp([&](const Var& v) { return list[0](v); }, ones({2, 3}, DType::f64), x)[0];
  const auto stack = wrap_layers(list, {.detach_history = true, .dtype = DType::f64});
  EXPECT_LT(
      largest_difference(vjp([&](const Var& v) { return stack(v); }, ones({2, 3}, DType::f64), x)[0], through_layer),
      1e-15);
}

TEST(MHCBlock, WrapsLambdas) {
  const auto twice = [](const Var& x) { return 2 * x; };
  const auto stack = wrap_layers(std::vector{twice, twice}, {.mode = SkipMode::residual, .dtype = DType::f64});
  EXPECT_THAT(stack(ones({2}, DType::f64)).value().to_vector<double>(), ElementsAre(9, 9));
}

TEST(MHCBlock, ProjectReachesEverySkipOfAModel) {
  Rng rng(1);
  auto stack = wrap_layers(layers(2, rng), {.projection = SkipProjection::post_step, .dtype = DType::f64});
  randomize(stack, rng);
  project(stack);
  for (const auto& block : stack.blocks) {
    const Var weights = block.skip.mixing_logits;
    EXPECT_NEAR(sum(weights).value().item(), 1, 1e-14);
  }
}

}  // namespace
}  // namespace braid::mhc::mhc_block_test
