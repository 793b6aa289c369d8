#include <braid/nn/transformer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <braid/autograd/ops/attention.h>
#include <braid/autograd/ops/gelu.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/rms_norm.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/clip.h>
#include <braid/nn/saving.h>

#include "tests/nn/module_checks.h"
#include "tests/support.h"

namespace braid::nn::transformer_test {
namespace {

const TransformerConfig kSmall{
    .vocab = 7, .context = 5, .channels = 8, .layers = 2, .heads = 2, .mlp_ratio = 2, .dtype = DType::f64};

/// Two streams with a learned gate: a connection that has parameters and a stream of its own.
struct TwoStreams {
  using Stream = std::pair<Var, Var>;
  Var gate;

  Stream open(const Var& embedding) const { return {embedding, embedding}; }
  Stream operator()(const Stream& s, auto&& layer) const { return {s.second, s.first + gate * layer(s.second)}; }
  Var close(const Stream& s) const { return s.first + s.second; }

  void params(auto&& visit) { visit("gate", gate); }
};

TwoStreams make_two_streams(int index) { return {full({}, 1 + 0.1 * index, DType::f64)}; }

/// Parameters of order one, for checks that the small ones of a fresh model would pass by chance.
template <class Model>
Model stirred(Model model, Rng& rng) {
  for_each_param(model,
                 [&](const std::string&, Var& p) { p = (p + 0.3 * Var(randn(p.shape(), rng, p.dtype()))).value(); });
  return model;
}

Tensor random_tokens(Rng& rng) { return randint(0, kSmall.vocab, {2, 4}, rng); }

Var reference_attention(const MultiHeadAttention& m, const Var& x) {
  auto split = [&](const Var& y) { return reshape(y, {2, 4, 2, 4}); };
  const Var y = attention(split(linear(x, m.q.weight)), split(linear(x, m.k.weight)), split(linear(x, m.v.weight)));
  return linear(reshape(y, {2, 4, 8}), m.o.weight);
}

Var reference_mlp(const MLP& m, const Var& x) {
  return linear(gelu(linear(x, m.up.weight, m.up.bias)), m.down.weight, m.down.bias);
}

TEST(Transformer, AddsAttentionAndMlpAfterTheirNorms) {
  Rng rng(1);
  const auto model = stirred(Transformer<>(kSmall, rng), rng);
  const Tensor tokens = random_tokens(rng);
  Var x = model.embedding(tokens) + model.positions.value().slice(0, 0, 4);
  for (const auto& [attention, mlp] : model.blocks) {
    x = x + reference_attention(attention.body, rms_norm(x, attention.norm.weight));
    x = x + reference_mlp(std::get<MLP>(mlp.body.layer), rms_norm(x, mlp.norm.weight));
  }
  expect_close(model.logits(tokens).value(), linear(rms_norm(x, model.norm.weight), model.head->weight).value());
}

TEST(Transformer, NamesItsParameters) {
  Rng rng(2);
  TransformerConfig config = kSmall;
  config.layers = 1;
  EXPECT_THAT(parameter_names(Transformer<TwoStreams>(config, rng, make_two_streams)),
              testing::ElementsAre(
                  "embedding.weight", "positions", "blocks.0.attention.norm.weight", "blocks.0.attention.q.weight",
                  "blocks.0.attention.k.weight", "blocks.0.attention.v.weight", "blocks.0.attention.o.weight",
                  "blocks.0.attention.connection.gate", "blocks.0.mlp.norm.weight", "blocks.0.mlp.up.weight",
                  "blocks.0.mlp.up.bias", "blocks.0.mlp.down.weight", "blocks.0.mlp.down.bias",
                  "blocks.0.mlp.connection.gate", "norm.weight", "head.weight"));
}

TransformerConfig gpt2() {
  TransformerConfig config = kSmall;
  config.norm = NormKind::layer;
  config.attention_bias = config.tied_head = true;
  return config;
}

TransformerConfig qwen3() {
  TransformerConfig config = kSmall;
  config.hidden = 5;
  config.kv_heads = 1;
  config.head_size = 6;
  config.positions = PositionKind::rotary;
  config.qk_norm = true;
  config.activation = Activation::swiglu;
  config.mlp_bias = false;
  return config;
}

TEST(Transformer, NamesTheParametersThatItsSettingsAdd) {
  Rng rng(2);
  TransformerConfig config = gpt2();
  config.layers = 1;
  EXPECT_THAT(parameter_names(Transformer<>(config, rng)),
              testing::ElementsAre(
                  "embedding.weight", "positions", "blocks.0.attention.norm.weight", "blocks.0.attention.norm.bias",
                  "blocks.0.attention.q.weight", "blocks.0.attention.q.bias", "blocks.0.attention.k.weight",
                  "blocks.0.attention.k.bias", "blocks.0.attention.v.weight", "blocks.0.attention.v.bias",
                  "blocks.0.attention.o.weight", "blocks.0.attention.o.bias", "blocks.0.mlp.norm.weight",
                  "blocks.0.mlp.norm.bias", "blocks.0.mlp.up.weight", "blocks.0.mlp.up.bias",
                  "blocks.0.mlp.down.weight", "blocks.0.mlp.down.bias", "norm.weight", "norm.bias"));
  config = qwen3();
  config.layers = 1;
  EXPECT_THAT(
      parameter_names(Transformer<>(config, rng)),
      testing::ElementsAre("embedding.weight", "blocks.0.attention.norm.weight", "blocks.0.attention.q.weight",
                           "blocks.0.attention.k.weight", "blocks.0.attention.v.weight", "blocks.0.attention.o.weight",
                           "blocks.0.attention.q_norm.weight", "blocks.0.attention.k_norm.weight",
                           "blocks.0.mlp.norm.weight", "blocks.0.mlp.up.weight", "blocks.0.mlp.gate.weight",
                           "blocks.0.mlp.down.weight", "norm.weight", "head.weight"));
}

TEST(Transformer, MixesTheValuesOfItsFirstAttentionIntoTheOthers) {
  Rng rng(8);
  TransformerConfig config = kSmall;
  config.layers = 3;
  config.value_residual = true;
  const Transformer<> model = stirred(Transformer<>(config, rng), rng);
  const std::vector<std::string> names = parameter_names(model);
  EXPECT_EQ(std::ranges::count_if(names, [](const auto& name) { return name.ends_with("value_weights"); }), 2);
  const Tensor tokens = random_tokens(rng), targets = random_tokens(rng);
  Var x = model.embed(tokens), first;
  for (const auto& block : model.blocks) x = block(x, AttentionCall{.first_values = &first});
  EXPECT_TRUE(identical(model.logits(tokens).value(), model.predict(x).value()));
  const auto loss = [&](const auto& m) { return m.loss(tokens, targets); };
  const auto grads = value_and_grad(loss)(model).second;
  for (std::size_t i : {1, 2}) {
    const std::vector<double> g = grads.blocks[i].attention.body.value_weights.value().template to_vector<double>();
    EXPECT_GT(std::min(std::abs(g[0]), std::abs(g[1])), 1e-6) << i;
  }
  const GradcheckResult result = gradcheck_module(model, loss, {.max_elements = 1, .directions = 2, .order = 2});
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(Transformer, GivesItsSettingsToItsModules) {
  Rng rng(9);
  TransformerConfig config = qwen3();
  config.norm_eps = 0.25;
  config.rotary_base = 123;
  const Transformer<> model(config, rng);
  const auto& [attention, mlp] = model.blocks[1];
  EXPECT_EQ(attention.norm.eps, 0.25);
  EXPECT_EQ(mlp.norm.eps, 0.25);
  EXPECT_EQ(model.norm.eps, 0.25);
  EXPECT_EQ(attention.body.q_norm->eps, 0.25);
  EXPECT_EQ(attention.body.settings.rotary_base, 123);
  EXPECT_EQ(attention.body.settings.rotary_layout, RotaryLayout::halves);
  EXPECT_EQ(attention.body.settings.kv_heads, 1);
  EXPECT_EQ(attention.body.head_size(), 6);
  EXPECT_EQ(std::get<MLP>(mlp.body.layer).activation, Activation::swiglu);
  EXPECT_EQ(std::get<MLP>(mlp.body.layer).up.weight.shape(), Shape({5, 8}));
  EXPECT_FALSE(attention.post_norm || mlp.post_norm);
}

TEST(Transformer, IsTheReferenceModelUnlessTold) {
  TransformerConfig config{.vocab = 256, .context = 64, .channels = 128, .layers = 4, .heads = 4, .mlp_ratio = 4};
  config.norm_eps = 1e-5;
  config.rotary_base = config.compressed_rotary_base = 10000;
  config.embedding_scale = config.rotary_share = 1;
  EXPECT_EQ(TransformerConfig(), config);
  EXPECT_EQ(StreamsSettings(), (StreamsSettings{.streams = 4, .sinkhorn_iterations = 20, .eps = 1e-6}));
  EXPECT_EQ(ExpertsSettings(), (ExpertsSettings{.experts = 8, .top = 2, .shared = 0, .scale = 1, .by_token = 0}));
  const AttentionSettings usual;
  EXPECT_EQ((std::vector{usual.rotary_base, usual.rotary_share, usual.norm_eps}), (std::vector{1e4, 1.0, 1e-5}));
}

TEST(Transformer, GivesTheSettingsOfDeepSeekToItsModules) {
  Rng rng(9);
  TransformerConfig config = qwen3();
  config.mlp_limit = 1.5;
  config.rotary_share = 1.0 / 3;
  config.shared_kv = config.attention_sinks = true;
  config.compressions = {{.rate = 1}, {}};
  config.compressed_rotary_base = 77;
  config.compressed_rotary_scaling = {.kind = RotaryScaling::Kind::yarn, .factor = 2, .first_context = 8};
  config.experts = ExpertsSettings{.experts = 3, .correction = true};
  config.token_routed = 1;
  const Transformer<> model(config, rng);
  for (std::size_t i = 0; i < 2; ++i) {
    const AttentionSettings& s = model.blocks[i].attention.body.settings;
    EXPECT_EQ(s.compression, config.compressions[i]);
    EXPECT_EQ(std::pair(s.rotary_base, s.rotary_share), std::pair(i == 1 ? 10000.0 : 77.0, 1.0 / 3));
    EXPECT_EQ(s.rotary_scaling, i == 1 ? RotaryScaling() : config.compressed_rotary_scaling);
    EXPECT_TRUE(s.rotary_layout == RotaryLayout::adjacent && s.rotary_trailing && s.sinks);
    const auto& experts = std::get<Experts>(model.blocks[i].mlp.body.layer);
    EXPECT_EQ(experts.experts[0].limit, 1.5);
    EXPECT_EQ(std::pair(experts.settings.by_token, experts.settings.correction),
              std::pair(i == 0 ? config.vocab : 0, i > 0));
  }
}

TEST(Transformer, GivesTheSettingsOfGemmaToItsModules) {
  Rng rng(9);
  TransformerConfig config = qwen3();
  config.layers = 3;
  config.activation = Activation::geglu;
  config.windows = {5, 0};
  config.norm_offset = 0.75;
  config.post_norms = true;
  config.attention_scale = 0.3;
  config.attention_softcap = 7;
  const Transformer<> model(config, rng);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [attention, mlp] = model.blocks[i];
    EXPECT_EQ(attention.body.settings.window, i == 1 ? 0 : 5);
    EXPECT_EQ(attention.body.settings.scale, 0.3);
    EXPECT_EQ(attention.body.settings.softcap, 7);
    EXPECT_EQ(std::get<MLP>(mlp.body.layer).activation, Activation::geglu);
    for (const Norm* norm : {&attention.norm, &mlp.norm, &*attention.post_norm, &*mlp.post_norm, &model.norm}) {
      EXPECT_EQ(norm->offset, 0.75);
      EXPECT_EQ(norm->eps, config.norm_eps);
      EXPECT_EQ(norm->weight.value().at({0}), 0.25);
    }
  }
  EXPECT_THAT(parameter_names(model),
              testing::IsSupersetOf({"blocks.1.attention.post_norm.weight", "blocks.2.mlp.post_norm.weight"}));
}

TEST(Transformer, ScalesEmbeddingsAndCapsLogits) {
  Rng rng(11);
  const Tensor tokens = random_tokens(rng);
  const auto plain = stirred(Transformer<>(qwen3(), rng), rng);
  auto scaled = plain, capped = plain;
  scaled.config.embedding_scale = 2;
  expect_close(scaled.embed(tokens).value(), (2.0 * plain.embed(tokens)).value());
  capped.config.logits_softcap = 0.5;
  const std::vector<double> logits = plain.logits(tokens).value().to_vector<double>();
  std::vector<double> expected;
  for (const double logit : logits) expected.push_back(0.5 * std::tanh(logit / 0.5));
  EXPECT_THAT(capped.logits(tokens).value().to_vector<double>(),
              testing::Pointwise(testing::DoubleNear(1e-6), expected));
}

TEST(Transformer, NormalizesWhatSublayersGiveWithPostNorms) {
  Rng rng(12);
  TransformerConfig config = qwen3();
  config.layers = 1;
  config.post_norms = true;
  const auto model = stirred(Transformer<>(config, rng), rng);
  const auto& [attention, mlp] = model.blocks[0];
  const Var x = model.embed(random_tokens(rng));
  const Var middle = x + (*attention.post_norm)(attention.body(attention.norm(x)));
  expect_close(model.blocks[0](x).value(), (middle + (*mlp.post_norm)(mlp.body(mlp.norm(middle)))).value(), 1e-6);
}

TEST(Transformer, HasExpertsInPlaceOfTheMlp) {
  Rng rng(13);
  TransformerConfig config = qwen3();
  config.experts = ExpertsSettings{.experts = 3,
                                   .top = 2,
                                   .shared = 1,
                                   .routing = Routing::sigmoid,
                                   .normalized = false,
                                   .scale = 2,
                                   .correction = true};
  const Transformer<> model(config, rng);
  const auto& experts = std::get<Experts>(model.blocks[1].mlp.body.layer);
  EXPECT_EQ(experts.experts.size(), 3U);
  EXPECT_EQ(experts.settings.top, 2);
  EXPECT_EQ(experts.settings.routing, Routing::sigmoid);
  EXPECT_EQ(experts.settings.scale, 2);
  EXPECT_FALSE(experts.settings.normalized);
  EXPECT_TRUE(experts.shared && experts.correction.value().defined());
  EXPECT_EQ(experts.experts[2].activation, Activation::swiglu);
  EXPECT_FALSE(experts.experts[2].up.has_bias());
  EXPECT_EQ(experts.experts[2].up.weight.shape(), Shape({5, 8}));
  const Tensor tokens = random_tokens(rng);
  const auto [loss, grads] = value_and_grad([&](const Transformer<>& m) { return m.loss(tokens, tokens); })(model);
  EXPECT_GT(sum(std::get<Experts>(grads.blocks[0].mlp.body.layer).router *
                std::get<Experts>(grads.blocks[0].mlp.body.layer).router)
                .item(),
            0);
  config.experts->top = 4;
  EXPECT_THROW(Transformer<>(config, rng), ValueError);
}

TEST(Transformer, RefusesSettingsThatAreNotFinite) {
  Rng rng(14);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto message = [&](auto set) {
    TransformerConfig config = qwen3();
    set(config);
    return message_of([&] { Transformer<>(config, rng); });
  };
  EXPECT_EQ(message([&](auto& c) { c.norm_offset = infinity; }), "Transformer: norm_offset must be finite but is inf");
  EXPECT_EQ(message([&](auto& c) { c.embedding_scale = -infinity; }),
            "Transformer: embedding_scale must be finite but is -inf");
  EXPECT_EQ(message([&](auto& c) { c.logits_softcap = -1; }),
            "Transformer: logits_softcap must be finite and at least 0 but is -1");
  EXPECT_EQ(message([&](auto& c) { c.mlp_limit = -1; }),
            "Transformer: mlp_limit must be finite and at least 0 but is -1");
  EXPECT_EQ(message([&](auto& c) { c.mlp_limit = infinity; }),
            "Transformer: mlp_limit must be finite and at least 0 but is inf");
  EXPECT_THAT(message([&](auto& c) { c.windows = {3, -1}; }), testing::StartsWith("Transformer: window and softcap"));
}

TEST(Transformer, TiesItsHeadToTheEmbedding) {
  Rng rng(10);
  const Tensor tokens = random_tokens(rng);
  const auto tied = stirred(Transformer<>(gpt2(), rng), rng);
  TransformerConfig config = gpt2();
  config.tied_head = false;
  Transformer<> untied(config, rng);
  NamedTensors params = to_tensors(tied);
  params["head.weight"] = params.at("embedding.weight");
  from_tensors(untied, params);
  EXPECT_TRUE(identical(tied.logits(tokens).value(), untied.logits(tokens).value()));
}

TEST(Transformer, TrainsAllParameters) {
  Rng rng(3);
  const Tensor tokens = random_tokens(rng), targets = random_tokens(rng);
  const auto loss = [&](const auto& m) { return m.loss(tokens, targets); };
  expect_gradients(stirred(Transformer<>(kSmall, rng), rng), loss);
  expect_gradients(stirred(Transformer<>(qwen3(), rng), rng), loss);
  TransformerConfig tied = gpt2();
  tied.attention_bias = false;  // softmax is blind to a bias that all keys share
  expect_gradients(stirred(Transformer<>(tied, rng), rng), loss);
  expect_gradients(stirred(Transformer<TwoStreams>(kSmall, rng, make_two_streams), rng), loss);
}

TEST(Transformer, GivesEachSublayerAConnectionOfItsOwn) {
  Rng rng(4);
  const Transformer<TwoStreams> model(kSmall, rng, make_two_streams);
  EXPECT_DOUBLE_EQ(model.blocks[0].attention.connection.gate.item(), 1.0);
  EXPECT_DOUBLE_EQ(model.blocks[1].mlp.connection.gate.item(), 1.3);
}

TEST(Transformer, IsCausal) {
  Rng rng(5);
  const auto model = stirred(Transformer<>(kSmall, rng), rng);
  const Tensor tokens = random_tokens(rng);
  expect_close(model.logits(tokens).value().slice(1, 0, 3), model.logits(tokens.slice(1, 0, 3).clone()).value(), 1e-14);
}

TEST(Transformer, StartsCloseToGuessing) {
  Rng rng(6);
  const Transformer<> model({.vocab = 65, .context = 16, .channels = 32, .layers = 2, .heads = 2}, rng);
  const Tensor tokens = randint(0, 65, {4, 16}, rng), targets = randint(0, 65, {4, 16}, rng);
  EXPECT_NEAR(model.loss(tokens, targets).item(), std::log(65.0), 0.05);
}

TEST(Transformer, StartsWithResidualProjectionsScaledByDepth) {
  Rng rng(7);
  const Transformer<> model({.channels = 64, .layers = 8}, rng);
  auto deviation = [](const Linear& layer) {
    const auto w = layer.weight.value().to_vector<double>();
    return std::sqrt(std::inner_product(w.begin(), w.end(), w.begin(), 0.0) / static_cast<double>(w.size()));
  };
  EXPECT_NEAR(deviation(model.blocks[3].attention.body.q), 0.02, 0.001);
  EXPECT_NEAR(deviation(std::get<MLP>(model.blocks[3].mlp.body.layer).up), 0.02, 0.001);
  EXPECT_NEAR(deviation(model.blocks[3].attention.body.o), 0.005, 0.0003);
  EXPECT_NEAR(deviation(std::get<MLP>(model.blocks[3].mlp.body.layer).down), 0.005, 0.0003);
  const Transformer<> mixture({.channels = 64, .layers = 8, .experts = ExpertsSettings{.experts = 2}}, rng);
  const MLP& expert = std::get<Experts>(mixture.blocks[3].mlp.body.layer).experts[1];
  EXPECT_NEAR(deviation(expert.up), 0.02, 0.001);
  EXPECT_NEAR(deviation(expert.down), 0.005, 0.0003);
  for_each_param(mixture, [](const std::string& name, const Var& p) {
    const double size = std::sqrt(sum(p * p).item() / static_cast<double>(p.numel()));
    if (name.ends_with("bias")) {
      EXPECT_EQ(size, 0) << name;
    } else if (name == "embedding.weight" || name == "positions" || name.ends_with("router")) {
      EXPECT_NEAR(size, 0.02, 0.006) << name;
    }
  });
}

TEST(Transformer, TrainsWithoutNewMemoryAfterTheFirstStep) {
  const WithThreads one(1);  // how many of several hold memory of their own at once differs between steps
  Rng rng(8);
  Transformer<> model({.vocab = 65, .context = 64, .channels = 128, .layers = 2, .heads = 4}, rng);
  const Tensor tokens = randint(0, 65, {4, 64}, rng), targets = randint(0, 65, {4, 64}, rng);
  AdamW optimizer;
  auto step = [&] {
    auto [loss, grads] = value_and_grad([&](const Transformer<>& m) { return m.loss(tokens, targets); })(model);
    clip_grad_norm(grads, 1);
    optimizer.step(model, grads);
    return loss;
  };
  const double first = step();
  const std::int64_t allocations = memory_stats().system_allocations;
  for (int i = 0; i < 3; ++i) EXPECT_LT(step(), first);
  EXPECT_EQ(memory_stats().system_allocations, allocations);
}

TEST(Transformer, RejectsBadSettingsAndTokens) {
  auto build = [](TransformerConfig config) {
    Rng rng;
    return Transformer<>(config, rng);
  };
  expect_error<ValueError>([&] { build({.channels = 10, .heads = 4}); },
                           "Transformer: heads must divide channels but channels is 10 and heads is 4");
  for (const auto& [setting, bad] : std::map<std::string, TransformerConfig>{{"vocab", {.vocab = 0}},
                                                                             {"context", {.context = 0}},
                                                                             {"channels", {.channels = 0}},
                                                                             {"layers", {.layers = 0}},
                                                                             {"heads", {.heads = 0}},
                                                                             {"mlp_ratio", {.mlp_ratio = 0}}})
    expect_error<ValueError>([&] { build(bad); }, "Transformer: " + setting + " must be at least 1 but is 0");
  for (const TransformerConfig& bad : {TransformerConfig{.experts = ExpertsSettings(), .token_routed = -1},
                                       {.layers = 2, .experts = ExpertsSettings(), .token_routed = 3},
                                       {.token_routed = 1}})
    EXPECT_THAT([&] { build(bad); },
                testing::ThrowsMessage<ValueError>(testing::HasSubstr("token_routed must be in [0, ")));
  expect_error<ValueError>([&] { build({.hidden = 0}); }, "Transformer: hidden must be at least 1 but is 0");
  expect_error<ValueError>([&] { build({.heads = 4, .kv_heads = 3}); },
                           "Transformer: kv_heads must divide heads but heads is 4 and kv_heads is 3");
  expect_error<ValueError>([&] { build({.padding = 256}); },
                           "Transformer: padding must be a token in [0, 256) but is 256");
  expect_error<ValueError>([&] { build({.head_size = 0}); }, "Transformer: head_size must be at least 1 but is 0");
  expect_error<ValueError>(
      [&] { build({.channels = 12, .positions = PositionKind::rotary}); },
      "Transformer: rotary positions need an even part of a head but head_size is 3 and rotary_share 1");
  const Transformer<> model = build(kSmall);
  expect_error<ShapeError>(
      [&] {
        model.logits(zeros({2, 6}, DType::i32));
      },
      "Transformer: tokens must have shape [B, T <= 5] but have [2, 6]");
  expect_error<ShapeError>([&] { model.logits(zeros({4}, DType::i32)); },
                           "Transformer: tokens must have shape [B, T <= 5] but have [4]");
}

TEST(Transformer, EmbedsUpToTheEndOfItsContext) {
  Rng rng(15);
  const Transformer<> model(kSmall, rng);
  const Tensor tokens = random_tokens(rng);  // 4 of 5
  expect_close(model.embed(tokens, 1).value(),
               (model.embedding(tokens) + model.positions.value().slice(0, 1, 5)).value());
  expect_error<ShapeError>([&] { model.embed(tokens, 2); },
                           "Transformer: tokens must have shape [B, T <= 3] but have [2, 4]");
  expect_error<ValueError>([&] { model.embed(tokens, -1); }, "Transformer: first must be >= 0 but is -1");
}

/// docs/threads.md: each thread has a tape, and a step leaves copies of a model as they are.
TEST(Transformer, IsDifferentiatedByThreadsAtOnceWhileACopyIsTrained) {
  Rng rng(1);
  const Transformer<> model(kSmall, rng);
  const Tensor tokens = random_tokens(rng), targets = random_tokens(rng);
  const auto gradients_of = [&](const Transformer<>& m) {
    return value_and_grad([&](const Transformer<>& x) { return x.loss(tokens, targets); })(m).second;
  };
  const NamedTensors expected = to_tensors(gradients_of(model));

  std::vector<NamedTensors> found(3);
  std::vector<std::thread> threads;
  for (NamedTensors& its : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) its = to_tensors(gradients_of(model));
    });
  Transformer<> trained = model;
  AdamW optimizer({.lr = 0.1});
  for (int i = 0; i < 10; ++i) optimizer.step(trained, gradients_of(trained));
  for (std::thread& thread : threads) thread.join();

  for (const NamedTensors& its : found)
    for (const auto& [name, gradient] : expected) EXPECT_TRUE(identical(its.at(name), gradient)) << name;
  EXPECT_FALSE(identical(trained.embedding.weight.value(), model.embedding.weight.value()));
}

}  // namespace
}  // namespace braid::nn::transformer_test
