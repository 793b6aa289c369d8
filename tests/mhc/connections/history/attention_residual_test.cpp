#include <braid/mhc/connections/history/attention_residual.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connections/residual_connection.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/streams/telemetry.h>
#include <tests/mhc/support.h>

namespace braid::mhc::attention_residual_connection_test {
namespace {

using testing::ThrowsMessage;

/// Connections around layers behind norms, with the embedding as a parameter.
struct Network {
  Var x;
  std::vector<AttentionResidual> connections;
  std::vector<TestLayer> layers;

  Network(const Shape& shape, int depth, std::int64_t block, Rng& rng) : x(random(shape, rng)) {
    for (int index = 0; index < depth; ++index) {
      connections.emplace_back(shape[-1], index, AttentionResidualSettings{.block = block, .dtype = DType::f64});
      layers.emplace_back(shape[-1], rng);
    }
  }

  Var layer(std::size_t i, const Var& h) const { return layers[i](rms_norm(h, 0)); }

  Var operator()() const {
    DepthSources state = connections.front().open(x);
    for (std::size_t i = 0; i < layers.size(); ++i)
      state = connections[i](state, [&](const Var& h) { return layer(i, h); });
    return connections.back().close(state);
  }

  void params(auto&& visit) {
    visit("x", x);
    visit("connections", connections);
    visit("layers", layers);
  }
};

TEST(AttentionResidualConnection, ReadsWhatThePaperReads) {
  Rng rng(1);
  Network network({2, 3, 4}, 5, 1, rng);
  randomize(network, rng);
  for (AttentionResidual& c : network.connections) c.settings.eps = 0.5;
  const auto attend = [&](std::size_t connection, const std::vector<Var>& sources) {
    const AttentionResidual& c = network.connections[connection];
    return attention_residual(c.query, c.norm, sources, 0.5);
  };
  std::vector<Var> v{network.x};
  Var h = network.x;
  for (std::size_t i = 0; i < 5; ++i) {
    v.push_back(network.layer(i, h));
    h = attend(i, v);
  }
  EXPECT_TRUE(identical(network().value(), h.value()));

  // Blocks of two: b_0 | f_0 + f_1 | f_2 + f_3 | f_4, of which the last is unfinished.
  for (AttentionResidual& c : network.connections) c.settings.block = 2;
  const auto f = [&](std::size_t i, const Var& input) { return network.layer(i, input); };
  const Var x = network.x, f0 = f(0, x), h1 = attend(0, {x, f0}), b1 = f0 + f(1, h1), h2 = attend(1, {x, b1});
  const Var f2 = f(2, h2), h3 = attend(2, {x, b1, f2}), b2 = f2 + f(3, h3), h4 = attend(3, {x, b1, b2});
  EXPECT_TRUE(identical(network().value(), attend(4, {x, b1, b2, f(4, h4)}).value()));
}

TEST(AttentionResidualConnection, PassesGradcheckFusedAndComposed) {
  for (const std::int64_t block : {1, 2})
    for (const bool composed : {false, true}) {
      const Form form(composed);
      Rng rng(2);
      Network network({1, 3}, 3, block, rng);
      randomize(network, rng, 1);
      const GradcheckResult result = gradcheck_module(network, [](const Network& n) { return n(); },
                                                      {.order = 2, .by = GradcheckOptions::By::both});
      EXPECT_TRUE(result.ok) << block << ": " << result.message;
    }
}

// The state is the residual network's sum over the number of sources, which norms without eps do not see.
TEST(AttentionResidualConnection, IsThePreNormResidualNetworkAtTheStart) {
  for (const std::int64_t block : {1, 2, 4}) {
    Rng rng(3);
    const Network network({3, 6}, 5, block, rng);
    Var x = network.x;
    for (std::size_t i = 0; i < 5; ++i) x = x + network.layer(i, x);
    const double sources = 1.0 + static_cast<double>((5 + block - 1) / block);
    EXPECT_LT(largest_difference((sources * network()).value(), x.value()), 1e-13) << block;
  }
}

TEST(AttentionResidualConnection, LearnsFromItsStart) {
  for (const std::int64_t block : {1, 3}) {
    Rng rng(4);
    Network network({3, 6}, 4, block, rng);
    const Tensor cotangent = random({3, 6}, rng);
    const auto step = value_and_grad([&](const Network& n) { return sum(n() * cotangent); });
    for (const bool moved : {false, true}) {
      const Network grads = step(network).second;
      for_each_param(grads, [&](const std::string& name, const Var& grad) {
        if (name.ends_with(".norm") && !moved) return;  // a factor of the query, which is zero
        EXPECT_GT(largest_difference(grad.value(), zeros(grad.shape(), DType::f64)), 1e-9) << name;
      });
      for (std::size_t i = 0; i < 4; ++i)
        network.connections[i].query = network.connections[i].query - 0.1 * grads.connections[i].query;
    }
  }
}

TEST(AttentionResidualConnection, HasTheEpsOfItsOpUnlessTold) { EXPECT_EQ(AttentionResidualSettings().eps, 1e-6); }

TEST(AttentionResidualConnection, NamesItsParameters) {
  EXPECT_THAT(param_names(AttentionResidual(4, 0)), testing::ElementsAre("query", "norm"));
}

TEST(AttentionResidualConnection, PassesEverySourceOnAsTelemetrySees) {
  Rng rng(5);
  const Network network({3, 6}, 4, 1, rng);
  const Telemetry telemetry;
  network();
  ASSERT_EQ(telemetry.connections().size(), 4);
  for (const ConnectionStats& stats : telemetry.connections()) {
    EXPECT_EQ(stats.composed_forward_gain, 1);
    EXPECT_EQ(stats.composed_backward_gain, 1);
  }
}

TEST(AttentionResidualConnection, RefusesWhatDoesNotFit) {
  EXPECT_THAT([] { AttentionResidual(0, 0); },
              ThrowsMessage<ValueError>("AttentionResidual: channels must be >= 1 but is 0"));
  EXPECT_THAT([] { AttentionResidual(4, -1); },
              ThrowsMessage<ValueError>("AttentionResidual: index must be >= 0 but is -1"));
  EXPECT_THAT([] { AttentionResidual(4, 0, {.block = 0}); },
              ThrowsMessage<ValueError>("AttentionResidual: block must be >= 1 but is 0"));
  const AttentionResidual connection(4, 0);
  EXPECT_THAT(
      [&] {
        connection(connection.open(zeros({2, 4})), [](const Var& h) { return sum(h, -1); });
      },
      ThrowsMessage<ShapeError>("AttentionResidual: layer must keep the shape [2, 4] but returned [2]"));
}

}  // namespace
}  // namespace braid::mhc::attention_residual_connection_test
