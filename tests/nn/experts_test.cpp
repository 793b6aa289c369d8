#include <braid/nn/experts.h>

#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include <braid/autograd/ops/index_select.h>
#include <braid/autograd/ops/silu.h>
#include <braid/core/parallel.h>
#include <braid/nn/transformer.h>

#include "tests/nn/module_checks.h"
#include "tests/support.h"

namespace braid::nn::experts_test {
namespace {

using testing::ElementsAre;

const MLPSettings kF64{.activation = Activation::swiglu, .bias = false, .dtype = DType::f64};

std::vector<ExpertsSettings> all_settings() {
  return {{.experts = 4, .top = 2, .mlp = kF64},
          {.experts = 3, .top = 3, .normalized = false, .mlp = kF64},
          {.experts = 5, .top = 1, .shared = 1, .routing = Routing::sigmoid, .mlp = kF64},
          {.experts = 4,
           .top = 2,
           .shared = 2,
           .routing = Routing::sqrt_softplus,
           .scale = 1.5,
           .correction = true,
           .mlp = kF64},
          {.experts = 1, .top = 1, .mlp = kF64}};
}

Experts stirred(const ExpertsSettings& settings, Rng& rng) {
  Experts experts(6, 5, rng, settings);
  if (settings.correction) experts.correction = randn({settings.experts}, rng, DType::f64);
  return experts;
}

double score(Routing routing, double logit, double total) {
  switch (routing) {
    case Routing::softmax: return std::exp(logit) / total;
    case Routing::sigmoid: return 1 / (1 + std::exp(-logit));
    case Routing::sqrt_softplus: break;
  }
  return std::sqrt(std::log1p(std::exp(logit)));
}

/// Token by token, x [N, C].
Tensor naive(const Experts& m, const Tensor& x) {
  const std::int64_t count = m.settings.experts, channels = x.size(1);
  std::vector<double> y;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    const auto product = [](const Tensor& w, const std::vector<double>& v) {
      std::vector<double> out;
      for (std::int64_t i = 0; i < w.size(0); ++i) {
        out.push_back(0);
        for (std::int64_t j = 0; j < w.size(1); ++j) out.back() += w.at({i, j}) * v[static_cast<std::size_t>(j)];
      }
      return out;
    };
    const std::vector<double> token = x.select(0, t).clone().to_vector<double>();
    const std::vector<double> logits = product(m.router.value(), token);
    double total = 0, chosen = 0;
    for (const double l : logits) total += std::exp(l);
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t e = 0; e < count; ++e) {
      const double bias = m.settings.correction ? m.correction.value().at({e}) : 0;
      order.emplace_back(-score(m.settings.routing, logits[static_cast<std::size_t>(e)], total) - bias, e);
    }
    std::sort(order.begin(), order.end());
    order.resize(static_cast<std::size_t>(m.settings.top));
    for (const auto& [_, e] : order) chosen += score(m.settings.routing, logits[static_cast<std::size_t>(e)], total);
    std::vector<double> out(static_cast<std::size_t>(channels));
    for (const auto& [_, e] : order) {
      const double weight = score(m.settings.routing, logits[static_cast<std::size_t>(e)], total) * m.settings.scale /
                            (m.settings.normalized ? chosen : 1);
      const MLP& mlp = m.experts[static_cast<std::size_t>(e)];
      const auto gate = product(mlp.gate->weight.value(), token), up = product(mlp.up.weight.value(), token);
      std::vector<double> inside;
      for (std::size_t i = 0; i < up.size(); ++i) inside.push_back(gate[i] / (1 + std::exp(-gate[i])) * up[i]);
      const std::vector<double> part = product(mlp.down.weight.value(), inside);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * part[i];
    }
    y.insert(y.end(), out.begin(), out.end());
  }
  const Tensor routed = Tensor::of<double>(x.shape(), std::span<const double>(y));
  return m.shared ? (routed + (*m.shared)(x)).value() : routed;
}

TEST(Experts, AreWhatTheirDefinitionSaysTokenByToken) {
  Rng rng(1);
  for (const ExpertsSettings& settings : all_settings())
    for (const std::int64_t tokens : {1, 2, 33}) {
      const Experts experts = stirred(settings, rng);
      const Tensor x = randn({tokens, 6}, rng, DType::f64);
      expect_close(experts(x).value(), naive(experts, x));
      expect_close(experts(x.reshape({1, tokens, 6})).value().reshape(x.shape()), naive(experts, x));
    }
}

TEST(Experts, AreThoseThatATableNamesForEachToken) {
  Rng rng(12);
  Experts experts(6, 5, rng, {.experts = 4, .top = 3, .by_token = 7, .mlp = kF64});
  for (std::int64_t id = 0; id < 7; ++id)
    EXPECT_EQ(
        (std::set{experts.table.value.at({id, 0}), experts.table.value.at({id, 1}), experts.table.value.at({id, 2})})
            .size(),
        3);
  const Tensor x = randn({2, 3, 6}, rng, DType::f64), tokens = Tensor::of<std::int32_t>({2, 3}, {6, 0, 2, 2, 1, 5});
  const Tensor named = index_select(Var(experts.table.value), 0, tokens.reshape({6})).value();
  EXPECT_TRUE(identical(experts(x, tokens).value(), experts(x, experts.route(x, named)).value()));
  EXPECT_TRUE(identical(FeedForward(experts)(x, tokens).value(), experts(x, tokens).value()));
  Experts other(6, 5, rng, experts.settings);
  from_tensors(other, to_tensors(experts));
  EXPECT_TRUE(identical(other.table.value, experts.table.value));
  EXPECT_THAT(parameter_names(other), testing::Not(testing::Contains("table")));  // which is not trained
  expect_error<ValueError>([&] { experts(x); }, "Experts: a choice by token needs the tokens");
  expect_error<ShapeError>([&] { experts(x, tokens.slice(1, 0, 2)); },
                           "Experts: tokens must be as many as those of x [2, 3, 6] but are [2, 2]");
  EXPECT_THROW(experts(x, full({2, 3}, 7, DType::i32)), ValueError);
  experts.table.value = full({7, 3}, 4, DType::i32);
  expect_error<ValueError>([&] { experts(x, tokens); }, "Experts: an expert must be in [0, 4) but is 4");
  expect_error<ValueError>([&] { Experts(6, 5, rng, {.correction = true, .by_token = 7}); },
                           "Experts: a choice by token has no correction");
}

TEST(Experts, TakeNoTokens) {
  Rng rng(2);
  EXPECT_EQ(Experts(6, 5, rng)(zeros({3, 0, 6})).shape(), Shape({3, 0, 6}));
}

TEST(Experts, TrainAllTheirParametersButTheCorrection) {
  Rng rng(3);
  for (const ExpertsSettings& settings : all_settings()) {
    if (settings.experts == 1) continue;  // the router of one expert has nothing to learn
    Experts experts = stirred(settings, rng);
    experts.correction = Var();
    const Tensor x = randn({12, 6}, rng, DType::f64);
    if (settings.normalized && settings.top == 1) continue;  // nor has that of one weight of 1
    expect_gradients(experts, [&](const Experts& m) { return m(x); });
  }
}

TEST(Experts, WithoutTokensHaveZeroGradients) {
  Rng rng(4);
  const Experts experts(6, 5, rng, {.experts = 3, .top = 1, .mlp = kF64});
  const Tensor x = randn({7, 6}, rng, DType::f64), to_the_last = full({7, 1}, 2, DType::i32);
  const auto [loss, grads] =
      value_and_grad([&](const Experts& m) { return sum(m(x, m.route(x, to_the_last))); })(experts);
  for (std::size_t e = 0; e < 3; ++e)
    for (const Var& grad : {grads.experts[e].up.weight, grads.experts[e].gate->weight, grads.experts[e].down.weight})
      EXPECT_EQ(identical(grad.value(), zeros(grad.shape(), DType::f64)), e < 2);
}

TEST(Experts, GiveTheSameBitsForAnyNumberOfThreads) {
  Rng rng(5);
  const Experts experts(32, 48, rng);
  const Tensor x = randn({500, 32}, rng);
  const auto results = [&](int threads) {
    set_num_threads(threads);
    const auto [loss, grads] = value_and_grad([&](const Experts& m) { return sum(m(x) * m(x)); })(experts);
    return std::vector<Tensor>{experts(x).value(), grads.router.value(), grads.experts[3].up.weight.value()};
  };
  const int before = num_threads();
  const auto one = results(1), three = results(3);
  set_num_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(identical(one[i], three[i])) << i;
}

TEST(Experts, AreBalancedByALossOrByACorrection) {
  const Tensor ids = Tensor::of<std::int32_t>({3, 1}, {0, 0, 1});
  const Tensor scores = Tensor::of<double>({3, 2}, {3, 1, 1, 1, 1, 3});
  expect_close(balance_loss({ids, {}, scores}).value(),
               Tensor::of<double>({}, {2 * (2.0 / 3 * (0.75 + 0.5 + 0.25) / 3 + 1.0 / 3 * (0.25 + 0.5 + 0.75) / 3)}));
  Rng rng(6);
  Experts experts(6, 5, rng, {.experts = 3, .top = 1, .correction = true, .mlp = kF64});
  experts.rebalance(Route{ids, {}, zeros({3, 3})}.loads(), 0.1);
  expect_close(experts.correction.value(), Tensor::of<double>({3}, {-0.1, 0, 0.1}));
}

TEST(Experts, TellAScopeTheirRoutesInOrder) {
  Rng rng(9);
  const Transformer<> model({.layers = 3, .heads = 2, .experts = ExpertsSettings{.experts = 5, .top = 2}}, rng);
  const Tensor tokens = randint(0, 256, {2, 7}, rng);
  model.logits(tokens);  // without a scope
  const RouteScope outer;
  {
    const RouteScope inner;
    model.logits(tokens);
    ASSERT_EQ(inner.routes.size(), 3U);
    for (const Route& route : inner.routes) {
      const std::vector<std::int64_t> loads = route.loads();
      EXPECT_EQ(loads.size(), 5U);
      EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}), 2 * 7 * 2);
    }
  }
  EXPECT_TRUE(outer.routes.empty());
  const auto& [attention, mlp] = model.blocks[0];
  attention(model.embed(tokens));
  EXPECT_TRUE(outer.routes.empty());
  mlp(model.embed(tokens));
  EXPECT_EQ(outer.routes.size(), 1U);
}

TEST(Experts, BalanceInTheLossOfAModelReachesTheRouters) {
  Rng rng(10);
  const Transformer<> model({.layers = 2, .heads = 2, .experts = ExpertsSettings{.experts = 4}}, rng);
  const Tensor tokens = randint(0, 256, {2, 7}, rng);
  const auto [loss, grads] = value_and_grad([&](const Transformer<>& m) {
    const RouteScope scope;
    m.logits(tokens);
    return balance_loss(scope.routes[0]) + balance_loss(scope.routes[1]);
  })(model);
  EXPECT_NEAR(loss, 2, 0.5);
  for (const auto& block : grads.blocks) {
    const auto values = std::get<Experts>(block.mlp.body.layer).router.value().to_vector<double>();
    EXPECT_TRUE(std::ranges::any_of(values, [](double g) { return g != 0; }));
  }
}

TEST(Experts, NameTheirParameters) {
  Rng rng(7);
  EXPECT_THAT(parameter_names(Experts(4, 3, rng, {.experts = 1, .top = 1})),
              ElementsAre("router", "experts.0.up.weight", "experts.0.gate.weight", "experts.0.down.weight"));
  const MLPSettings plain;
  EXPECT_THAT(
      parameter_names(Experts(4, 3, rng, {.experts = 1, .top = 1, .shared = 2, .correction = true, .mlp = plain})),
      ElementsAre("router", "experts.0.up.weight", "experts.0.up.bias", "experts.0.down.weight", "experts.0.down.bias",
                  "correction", "shared.up.weight", "shared.up.bias", "shared.down.weight", "shared.down.bias"));
}

TEST(Experts, RefuseWhatDoesNotFit) {
  Rng rng(8);
  expect_error<ValueError>([&] { Experts(4, 3, rng, {.experts = 2, .top = 3}); },
                           "Experts: top must be in [1, 2], the number of experts, but is 3");
  expect_error<ValueError>([&] { Experts(0, 3, rng); },
                           "Experts: channels and hidden must be at least 1 but are 0 and 3");
  expect_error<ValueError>(
      [&] { Experts(4, 3, rng, {.experts = 0, .top = 0}); },
      "Experts: experts must be at least 1, and shared and by_token not negative but they are 0, 0 and 0");
  expect_error<ValueError>(
      [&] { Experts(4, 3, rng, {.shared = -1}); },
      "Experts: experts must be at least 1, and shared and by_token not negative but they are 8, -1 and 0");
  const Experts experts(4, 3, rng);
  const Tensor x = zeros({5, 4});
  expect_error<ShapeError>(
      [&] {
        experts.route(x, zeros({5, 1}, DType::i32));
      },
      "Experts: experts must have shape [5, 2] for as many tokens but have [5, 1]");
  EXPECT_THROW(experts.route(x, full({5, 2}, 8, DType::i32)), ValueError);
  EXPECT_THROW(experts.route(x, full({5, 2}, -1, DType::i32)), ValueError);
  expect_error<DTypeError>([&] { experts.route(x, zeros({5, 2})); }, "Experts: experts must be i32 but are f32");
  EXPECT_NO_THROW(Experts(1, 1, rng, {.experts = 1, .top = 1}));
  Experts copy = experts;
  expect_error<ValueError>([&] { copy.rebalance(experts.route(x).loads(), 0.1); },
                           "Experts: rebalance needs the setting correction");
  Experts corrected(4, 3, rng, {.correction = true});
  expect_error<ShapeError>([&] { corrected.rebalance(std::vector<std::int64_t>(7), 0.1); },
                           "Experts: rebalance needs the loads of 8 experts but has 7");
}

}  // namespace
}  // namespace braid::nn::experts_test
