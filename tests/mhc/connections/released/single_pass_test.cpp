#include <braid/mhc/connections/released/single_pass.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/mhc/support.h>

namespace braid::mhc::single_pass_test {
namespace {

/// A chain of connections around layers, on streams [.., n, C] from the start to what is read last.
struct Chain {
  Var x;
  std::vector<SinglePassConnection> connections;
  std::vector<TestLayer> layers;

  Chain(const Tensor& x, int depth, std::int64_t keep_every, Rng& rng) : x(x) {
    for (int i = 0; i < depth; ++i) {
      connections.emplace_back(x.size(-1), x.size(-2), rng,
                               ReleasedSettings{.hc_eps = 1e-3, .keep_every = keep_every, .dtype = DType::f64});
      randomize(connections.back(), rng);
      layers.emplace_back(x.size(-1), rng);
    }
  }

  Var operator()() const {
    SinglePassStreams s = connections.front().first(Streams(x, connections.front().parameters.settings.keep_every));
    for (std::size_t i = 0; i < layers.size(); ++i) s = connections[i](s, layers[i]);
    return connections.back().close(s);
  }

  void params(auto&& visit) {
    visit("x", x);
    visit("connections", connections);
    visit("layers", layers);
  }
};

TEST(SinglePassConnection, PassesGradcheckAlongAChainFusedAndComposed) {
  Rng rng(1);
  for (const bool composed : {false, true}) {
    const Form form(composed);
    const Chain chain(random({2, 2, 3}, rng), 3, 1, rng);
    const GradcheckResult result = gradcheck_module(chain, [](const auto& c) { return c(); });
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(SinglePassConnection, IsTheSameFusedComposedAndWithRecomputedStreams) {
  for (const Shape& shape : {Shape{3, 4, 8}, {2, 5, 1, 3}, {0, 4, 8}, {37, 3, 17}}) {
    const auto run = [&](bool composed, std::int64_t keep_every) {
      const Form form(composed);
      Rng rng(2);
      const Chain chain(random(shape, rng), 4, keep_every, rng);
      const Tensor cotangent = random(shape.without(-2), rng);
      return value_and_grad([&](const auto& c) { return sum(c() * cotangent); })(chain);
    };
    const auto [loss, grads] = run(true, 1);
    for (const std::int64_t keep_every : {1, 3}) {
      const auto [fused_loss, fused_grads] = run(false, keep_every);
      EXPECT_NEAR(fused_loss, loss, 1e-11);
      std::vector<Tensor> expected;
      for_each_param(grads, [&](const std::string&, const Var& g) { expected.push_back(g.value()); });
      auto next = expected.begin();
      for_each_param(fused_grads, [&](const std::string& name, const Var& g) {
        EXPECT_LT(largest_difference(g.value(), *next++), 1e-10) << name;
      });
    }
  }
}

TEST(SinglePassConnection, ReadsStreamZeroFirstAndThenByTheConnectionBefore) {
  Rng rng(3);
  const Chain chain(random({2, 4, 3}, rng), 2, 1, rng);
  SinglePassStreams s = chain.connections[0].first(Streams(chain.x));
  EXPECT_LT(largest_difference(chain.connections[0].read(s).value(), chain.x.value().select(-2, 0).contiguous()),
            1e-15);
  const StreamMaps maps = compose_maps(chain.connections[0].parameters.maps.maps(), chain.x);
  EXPECT_LT(largest_difference(s.h_pre.value().contiguous(), maps.h_pre.value()), 1e-14);
}

TEST(SinglePassConnection, IsTheResidualNetworkAtTheStart) {
  Rng rng(4);
  const Tensor x = random({2, 6}, rng);
  const SinglePassConnection c(6, 4, rng, {.hc_eps = 0, .dtype = DType::f64});
  SinglePassStreams streams = c.open(x);
  Var residual = x;
  for (int depth = 0; depth < 5; ++depth) {
    const TestLayer layer(6, rng);
    streams = c(streams, layer);
    residual = residual + layer(residual);
  }
  EXPECT_LT(largest_difference(c.close(streams).value(), residual.value()), 1e-12);
}

}  // namespace
}  // namespace braid::mhc::single_pass_test
