#include <braid/mhc/connections/rewire.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connections/hyper_connection.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/connections/residual_connection.h>
#include <tests/mhc/support.h>

namespace braid::mhc::rewire_test {
namespace {

using testing::ElementsAre;

TEST(Rewire, PutsALayerInsideAManifoldHyperConnection) {
  Rng rng(1);
  const TestLayer layer(6, rng);
  auto block = rewire(layer, 6, rng, {.dtype = DType::f64});
  const Tensor x = random({2, 6}, rng);
  const auto& c = block.connection;
  EXPECT_TRUE(identical(block(x).value(), c.post_combine(x, layer(c.pre_scale(x))).value()));
  EXPECT_THAT(param_names(block),
              ElementsAre("layer.up", "layer.down", "connection.h_res_raw", "connection.h_pre_raw",
                          "connection.h_pre_bias", "connection.h_post_raw", "connection.h_post_bias"));
}

TEST(Rewire, TakesAnyConnection) {
  Rng rng(1);
  const TestLayer layer(6, rng);
  const Tensor x = random({2, 6}, rng), streams = random({2, 4, 6}, rng);
  EXPECT_TRUE(identical(rewire(layer, ResidualConnection())(x).value(), (x + layer(x)).value()));
  const ManifoldConstrainedHC mhc(6, 4, rng, {.dtype = DType::f64});
  EXPECT_TRUE(identical(rewire(layer, mhc)(streams).value(), mhc(streams, layer).value()));
  const HyperConnection hc(6, 4, 0, {.dtype = DType::f64});
  EXPECT_TRUE(identical(rewire(layer, hc)(streams).value(), hc(streams, layer).value()));
}

TEST(Rewire, TakesLambdas) {
  auto block = rewire([](const Var& x) { return 2 * x; }, ResidualConnection());
  EXPECT_THAT(block(Tensor::of<float>({2}, {1, 2})).value().to_vector<double>(), ElementsAre(3, 6));
  EXPECT_TRUE(param_names(block).empty());
}

TEST(Rewire, PassesGradcheck) {
  Rng rng(1);
  auto block = rewire(TestLayer(4, rng), ManifoldConstrainedHC(4, 3, rng, {.dtype = DType::f64}));
  randomize(block, rng);
  const Tensor x = random({2, 3, 4}, rng);
  const GradcheckResult result = gradcheck_module(block, [&](const auto& m) { return m(x); });
  EXPECT_TRUE(result.ok) << result.message;
}

}  // namespace
}  // namespace braid::mhc::rewire_test
