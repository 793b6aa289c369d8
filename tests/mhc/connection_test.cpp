#include <braid/mhc/connection.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/derivatives.h>
#include <braid/mhc/connections/history/mhc_block.h>
#include <braid/mhc/ops/read_write.h>
#include <braid/nn/optim/muon.h>
#include <tests/mhc/support.h>

namespace braid::mhc::connection_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

const std::vector<std::string> kNames = {
    "residual",    "hc",         "mhc",   "manifold",    "mhc-layer",          "skip",
    "deepseek-v4", "hunyuan-v4", "gated", "single-pass", "attention-residual", "frac",
    "layer-scale", "rezero",     "laurel"};

/// Layers between connections, as a transformer has them.
struct Network {
  std::vector<Connection> connections;
  std::vector<TestLayer> layers;

  Network(const ConnectionConfig& config, std::int64_t channels, int depth, Rng& rng) {
    for (int index = 0; index < depth; ++index) {
      connections.emplace_back(config, channels, index, rng);
      layers.emplace_back(channels, rng);
    }
  }

  Var operator()(const Var& x) const {
    Connection::Stream stream = connections.front().open(x);
    for (std::size_t i = 0; i < layers.size(); ++i)
      stream = connections[i](stream, [&](const Var& h) { return layers[i](rms_norm(h, 1e-5)); });
    return connections.back().close(stream);
  }

  void params(auto&& visit) {
    visit("connections", connections);
    visit("layers", layers);
  }
};

ConnectionConfig config_of(std::string_view name) { return {.kind = connection_kind(name), .dtype = DType::f64}; }

TEST(Connection, IsKnownByName) {
  for (const std::string& text : kNames) {
    EXPECT_EQ(name(connection_kind(text)), text);
    Rng rng(1);
    EXPECT_EQ(Connection(config_of(text), 8, 0, rng).kind(), connection_kind(text));
  }
  EXPECT_THAT([] { connection_kind("mch"); },
              ThrowsMessage<ValueError>(
                  HasSubstr("connection must be one of residual, hc, mhc, manifold, mhc-layer, skip, deepseek-v4, "
                            "hunyuan-v4, gated, single-pass, attention-residual, frac, layer-scale, rezero, "
                            "laurel but is 'mch'")));
}

TEST(Connection, RunsEveryKindFromOpenToClose) {
  Rng rng(1);
  for (const std::string& text : kNames) {
    const Network network(config_of(text), 8, 5, rng);
    for (const Shape& shape : {Shape{8}, Shape{2, 8}, Shape{2, 3, 8}})
      EXPECT_EQ(network(random(shape, rng)).shape(), shape) << text;
  }
}

TEST(Connection, PassesGradcheckForEveryKindWithEveryParameterReached) {
  for (const std::string& text : kNames) {
    Rng rng(1);
    Network network(config_of(text), 4, 3, rng);
    randomize(network, rng);
    const Tensor x = random({2, 4}, rng);
    const GradcheckResult result =
        gradcheck_module(network, [&](const Network& m) { return m(x); }, {.by = GradcheckOptions::By::both});
    EXPECT_TRUE(result.ok) << text << ": " << result.message;
    const GradcheckResult second = gradcheck_module(network, [&](const Network& m) { return m(x); },
                                                    {.max_elements = 1, .directions = 1, .order = 2});
    EXPECT_TRUE(second.ok) << text << ": " << second.message;
    const GradcheckResult input = gradcheck([&](std::span<const Var> in) { return network(in[0]); }, {x}, {.order = 2});
    EXPECT_TRUE(input.ok) << text << ": " << input.message;
  }
}

/// Of a network at its start, with the same layers and input.
double distance_from_residual(const ConnectionConfig& config) {
  Rng rng(1), same(1);
  const Tensor x = random({2, 8}, rng);
  const Network network(config, 8, 6, rng);
  Network residual(config_of("residual"), 8, 6, same);
  residual.layers = network.layers;
  return largest_difference(network(x).value(), residual(x).value());
}

TEST(Connection, StartsLikeTheResidualNetworkWhereThatIsTheDefault) {
  const double eps = 1e-4;  // n hc_eps a connection, multiplied by what follows
  for (const auto& [text, bound] : {std::pair("hc", 1e-13),
                                    {"frac", 1e-13},
                                    {"laurel", 1e-13},
                                    {"mhc", 1e-13},
                                    {"mhc-layer", 1e-4},  // its norm's eps
                                    {"skip", 1e-2},       // exp(-10) a skipped state
                                    {"deepseek-v4", eps},
                                    {"hunyuan-v4", eps},
                                    {"single-pass", eps},
                                    {"gated", 0.1}})
    EXPECT_LT(distance_from_residual(config_of(text)), bound) << text;
}

TEST(Connection, HasTheDefaultsThatHeadersShow) {
  const auto numbers = [](auto... values) { return std::vector<double>{static_cast<double>(values)...}; };
  const ConnectionConfig c;
  const ReleasedSettings r;
  const FracConnectionSettings f;
  const ManifoldConstrainedHCSettings m;
  const MixingSettings s;
  const GatedResidualSettings g;
  const MHCLayerSettings l;
  const WeightedHeadSettings w;
  EXPECT_EQ(numbers(c.sinkhorn_iterations, r.sinkhorn_iterations, f.sinkhorn_iterations, l.sinkhorn_iterations,
                    s.iterations, s.eps, s.gamma, s.block),
            numbers(20, 20, 20, 20, 20, 0, 1, 2));
  EXPECT_EQ(numbers(c.alpha, r.scale, f.alpha, m.alpha, c.scale_init), numbers(0.01, 0.01, 0.01, 0.01, 0.1));
  EXPECT_EQ(numbers(c.laurel_rank, g.rank, c.keep_every, r.keep_every, m.keep_every), numbers(4, 16, 1, 1, 1));
  EXPECT_EQ(numbers(c.norm_eps, c.hc_eps, r.norm_eps, r.hc_eps, w.norm_eps, w.hc_eps, g.norm_eps, m.eps, f.eps, l.eps),
            numbers(1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-5));
}

TEST(Connection, StartsLikeTheResidualNetworkWithEveryMixing) {
  for (const std::string_view mixing : mixing_names()) {
    ConnectionConfig config = config_of("mhc");
    config.mixing = mixing;
    EXPECT_LT(distance_from_residual(config), mixing == "diagonal" ? 2e-2 : 1e-13) << mixing;
  }
}

TEST(Connection, StartsLikeTheResidualNetworkUnderEveryHead) {
  for (const StreamHead head : {StreamHead::mean, StreamHead::weighted, StreamHead::softmax}) {
    ConnectionConfig config = config_of("mhc");
    config.head = head;
    config.sublayers = 6;
    config.stream_embedding = true;
    EXPECT_LT(distance_from_residual(config), 1e-4);
  }
}

TEST(Connection, KeepsTheResidualFunctionWithAlphaZeroAndSetsTheStreamsApart) {
  for (const auto& [text, bound] :
       {std::pair("mhc", 1e-13), {"deepseek-v4", 1e-4}, {"hunyuan-v4", 1e-4}, {"single-pass", 1e-4}}) {
    ConnectionConfig config = config_of(text);
    config.phi_std = 0.02;
    config.alpha = 0;
    EXPECT_LT(distance_from_residual(config), bound) << text;
    Rng rng(1);
    Network network(config, 8, 6, rng);
    const Tensor x = random({2, 8}, rng), cotangent = random({2, 8}, rng);
    const auto step = value_and_grad([&](const Network& m) { return sum(m(x) * cotangent); });
    for (int steps = 0; steps < 2; ++steps) {  // alpha moves with the first, phi with the second
      const Network grads = step(network).second;
      std::vector<Tensor> all;
      for_each_param(grads, [&](const std::string&, const Var& g) { all.push_back(g.value()); });
      std::size_t i = 0;
      for_each_param(network, [&](const std::string&, Var& p) { p = p - 0.1 * all[i++]; });
    }
    const auto stream = network.connections[0](network.connections[0].open(x), network.layers[0]);
    const Tensor streams = value(stream).value();
    EXPECT_GT(largest_difference(streams.select(-2, 0), streams.select(-2, 1)), 1e-6) << text;
  }
}

TEST(Connection, ShowsTheValueOfEveryStream) {
  Rng rng(1);
  const Tensor x = random({2, 8}, rng);
  for (const std::string_view name : connection_names()) {
    ConnectionConfig config = config_of(name);
    config.streams = default_streams(config.kind);
    const Connection connection(config, 8, 0, rng);
    const Tensor shown = value(connection.open(x)).value();
    EXPECT_TRUE(identical(shown.reshape({2, -1}).slice(1, 0, 8), x)) << name;
  }
}

// Streams that differ, since equal ones make H_res, whose rows sum to 1, as good as any other.
TEST(Connection, LearnsEveryParameterFromItsStart) {
  for (const std::string text : {"hc", "mhc", "deepseek-v4", "hunyuan-v4", "gated", "single-pass", "frac"})
    for (const std::string_view mixing : mixing_names()) {
      if (text != "mhc" && mixing != "sinkhorn") continue;
      Rng rng(2);
      ConnectionConfig config = config_of(text);
      config.streams = 4;
      config.mixing = mixing;
      config.fractions = 2;
      config.phi_std = 0.02;
      config.stream_embedding = true;
      config.head = StreamHead::softmax;
      config.sublayers = 4;
      Network network(config, 6, 4, rng);
      network.connections[0].stream_embedding = random({4, 6}, rng);
      const Tensor x = random({3, 6}, rng), cotangent = random({3, 6}, rng);
      const auto step = value_and_grad([&](const Network& m) { return sum(m(x) * cotangent); });
      for_each_param(step(network).second, [&](const std::string& name, const Var& grad) {
        const bool of_zeros = name.ends_with("head.scale") || (text == "hc" && name.ends_with("alpha"));
        if (of_zeros) return;  // the scale of maps that do not depend on the token yet
        EXPECT_GT(largest_difference(grad.value(), zeros(grad.shape(), DType::f64)), 1e-12)
            << text << " " << mixing << " " << name;
      });
    }
}

TEST(Connection, PassesGradcheckUnderEveryHead) {
  for (const std::string text : {"mhc", "single-pass"})
    for (const std::string_view head : stream_head_names()) {
      Rng rng(1);
      ConnectionConfig config = config_of(text);
      config.streams = 2;
      config.head = stream_head(head);
      config.sublayers = 2;
      config.stream_embedding = true;
      Network network(config, 2, 2, rng);
      randomize(network, rng);
      const Tensor x = random({2, 2}, rng);
      const GradcheckResult result = gradcheck_module(network, [&](const Network& m) { return m(x); });
      EXPECT_TRUE(result.ok) << text << " " << head << ": " << result.message;
    }
}

TEST(Connection, NeedsTheNumberOfSublayersForAHeadWithParameters) {
  Rng rng;
  ConnectionConfig config = config_of("mhc");
  config.head = stream_head("weighted");
  config.sublayers = 3;
  EXPECT_THAT([&] { Connection(config, 8, 3, rng); },
              ThrowsMessage<ValueError>(
                  "Connection: head weighted needs the number of sublayers, but that is 3 at sublayer 3"));
  config.sublayers = 4;
  EXPECT_THAT(param_names(Connection(config, 8, 3, rng)), Contains("head.fn"));
  EXPECT_THAT(param_names(Connection(config, 8, 2, rng)), Not(Contains("head.fn")));
}

TEST(Connection, NamesTheParametersOfItsModule) {
  Rng rng(1);
  EXPECT_THAT(param_names(Network(config_of("mhc"), 4, 1, rng)), Contains("connections.0.phi"));
  EXPECT_THAT(param_names(Network(config_of("skip"), 4, 1, rng)), Contains("connections.0.mixing_logits"));
}

TEST(Connection, PassesItsSettingsOn) {
  Rng rng(1);
  ConnectionConfig config = config_of("mhc");
  config.streams = 3;
  config.sinkhorn_iterations = 5;
  config.phi_std = 0.02;
  const Connection c(config, 8, 0, rng);
  const auto& mhc = std::get<ManifoldConstrainedHC>(c.module);
  EXPECT_EQ(mhc.streams(), 3);
  EXPECT_EQ(mhc.settings.mixing_settings.iterations, 5);
  EXPECT_EQ(mhc.phi.dtype(), DType::f64);
  EXPECT_GT(largest_difference(mhc.phi.value(), zeros(mhc.phi.shape(), DType::f64)), 1e-3);
  const Connection manifold(config_of("manifold"), 8, 0, rng);
  EXPECT_EQ(std::get<ManifoldHyperConnection>(manifold.module).expansion(), 2);
  const Connection hc(config_of("hc"), 8, 6, rng);
  EXPECT_EQ(std::get<HyperConnection>(hc.module).b_pre.value().at({2}), 1);  // 6 mod 4
  const Connection rezero(config_of("rezero"), 8, 0, rng);
  EXPECT_EQ(std::get<LayerScale>(rezero.module).scale.item(), 0);
}

/// What a configuration makes of a network: the parameters at the start, the interval of kept streams, and the output
/// once the parameters are stirred.
std::vector<double> effect_of(const ConnectionConfig& config) {
  Rng rng(3), noise(4);
  Network network(config, 8, 6, rng);
  for_each_param(network.layers, [&](const std::string&, Var& p) { p = p.value().to(config.dtype); });
  std::vector<double> effect;
  const auto add = [&](const Tensor& t) {
    const std::vector<double> values = t.to(DType::f64).to_vector<double>();
    effect.insert(effect.end(), values.begin(), values.end());
    effect.push_back(static_cast<double>(t.dtype()));
  };
  for (Connection& c : network.connections) {
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.settings.keep_every; })
            effect.push_back(static_cast<double>(m.settings.keep_every));
          if constexpr (requires { m.parameters.settings.keep_every; })
            effect.push_back(static_cast<double>(m.parameters.settings.keep_every));
        },
        c.module);
    for_each_param(c, [&](const std::string&, Var& p) {
      add(p.value());
      p = (p + 0.5 * Var(randn(p.shape(), noise, p.dtype()))).value();
    });
  }
  Rng of_x(5);
  add(network(randn({2, 8}, of_x, config.dtype)).value());
  return effect;
}

TEST(Connection, GetsEveryFieldOfItsConfiguration) {
  using Change = std::function<void(ConnectionConfig&)>;
  struct Field {
    const char* name;
    std::set<std::string> kinds;  // that it is for
    Change change;
  };
  const std::set<std::string> with_streams{"hc",         "mhc",   "mhc-layer",   "deepseek-v4",
                                           "hunyuan-v4", "gated", "single-pass", "frac"},
      kept{"mhc", "deepseek-v4", "hunyuan-v4", "single-pass"}, released{"deepseek-v4", "hunyuan-v4", "single-pass"};
  std::set<std::string> all_streams = with_streams, dynamic = kept, all(kNames.begin(), kNames.end());
  all_streams.insert("manifold");
  dynamic.insert("frac");
  const std::vector<Field> fields{
      {"streams", all_streams, [](auto& c) { c.streams = 8; }},
      {"sinkhorn_iterations",
       {"mhc", "manifold", "mhc-layer", "deepseek-v4", "single-pass", "frac"},
       [](auto& c) { c.sinkhorn_iterations = 1; }},
      {"mixing", {"mhc"}, [](auto& c) { c.mixing = "rows"; }},
      {"phi_std", dynamic, [](auto& c) { c.phi_std = 0.5; }},
      {"alpha", dynamic, [](auto& c) { c.alpha = 0.7; }},
      {"dynamic", {"hc"}, [](auto& c) { c.dynamic = false; }},
      {"skip.mode", {"skip"}, [](auto& c) { c.skip.mode = SkipMode::hc; }},
      {"skip.init", {"skip"}, [](auto& c) { c.skip.init = SkipInit::uniform; }},
      {"skip.projection", {"skip"}, [](auto& c) { c.skip.projection = SkipProjection::post_step; }},
      {"skip.max_history", {"skip"}, [](auto& c) { c.skip.max_history = 2; }},
      {"skip.constraint", {"skip"}, [](auto& c) { c.skip.constraint = doubly_stochastic_constraint(); }},
      {"skip.constraint's temperature", {"skip"}, [](auto& c) { c.skip.constraint = simplex_constraint(3); }},
      {"depth_block", {"attention-residual"}, [](auto& c) { c.depth_block = 2; }},
      {"fractions", {"frac"}, [](auto& c) { c.fractions = 2; }},
      {"proposals", {"frac"}, [](auto& c) { c.proposals = 2; }},
      {"constrained", {"frac"}, [](auto& c) { c.constrained = false; }},
      {"scale_init", {"layer-scale"}, [](auto& c) { c.scale_init = 0.2; }},
      {"laurel_rank", {"laurel"}, [](auto& c) { c.laurel_rank = 3; }},
      {"head mean", {"single-pass"}, [](auto& c) { c.head = StreamHead::mean; }},
      {"head sum", with_streams, [](auto& c) { c.head = StreamHead::sum; }},
      {"head weighted", with_streams, [](auto& c) { c.head = StreamHead::weighted; }},
      {"hc_eps", released, [](auto& c) { c.hc_eps = 0.1; }},
      {"norm_eps", released, [](auto& c) { c.norm_eps = 0.1; }},
      {"head softmax", with_streams, [](auto& c) { c.head = StreamHead::softmax; }},
      {"head gated", with_streams, [](auto& c) { c.head = StreamHead::gated; }},
      {"head attention", with_streams, [](auto& c) { c.head = StreamHead::attention; }},
      {"stream_embedding", with_streams, [](auto& c) { c.stream_embedding = true; }},
      {"keep_every", kept, [](auto& c) { c.keep_every = 2; }},
      {"dtype", all, [](auto& c) { c.dtype = DType::f32; }}};
  for (const std::string& kind : kNames) {
    ConnectionConfig config = config_of(kind);
    config.sublayers = 6;
    if (kind == "frac") config.streams = 2;
    config.constrained = true;
    const std::vector<double> before = effect_of(config);
    for (const Field& field : fields) {
      ConnectionConfig changed = config;
      field.change(changed);
      EXPECT_EQ(effect_of(changed) != before, field.kinds.contains(kind)) << field.name << " of " << kind;
    }
    for (double ConnectionConfig::*eps : {&ConnectionConfig::hc_eps, &ConnectionConfig::norm_eps}) {
      ConnectionConfig weighted = config;
      weighted.head = StreamHead::weighted;
      ConnectionConfig changed = weighted;
      changed.*eps = 0.1;
      if (!with_streams.contains(kind)) continue;
      EXPECT_NE(effect_of(changed), effect_of(weighted)) << "head of " << kind;
    }
  }
}

TEST(Connection, EvaluatesWithItsParametersAsTheyAre) {
  for (const std::string& kind : kNames) {
    Rng rng(1);
    Network network(config_of(kind), 8, 2, rng);
    const Tensor x = random({3, 8}, rng);
    network(x);  // fills the caches
    for_each_param(network, [&](const std::string& name, Var& p) {
      p = random(p.shape(), rng);
      const Network copy = network;  // whose caches are empty
      EXPECT_TRUE(identical(network(x).value(), copy(x).value())) << kind << " " << name;
    });
  }
}

/// The names of the ops on a tape.
struct OpNames : Probe {
  std::vector<std::string> names;

  void recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>&) override {
    names.emplace_back(op.name);
  }
};

TEST(Connection, RunsInComposedFormWithinAScope) {
  const auto fused_ops =
      testing::AnyOf("mhc_read", "mhc_write_read", "hyper_read", "gated_read", "read_streams", "write_streams",
                     "scale_groups", "mix_groups", "weighted_sum", "sinkhorn", "mix_streams", "attention_residual");
  for (const std::string_view text : connection_names()) {
    Rng rng(1);
    const Connection c(config_of(text), 8, 0, rng);
    const Tensor x = random({2, 8}, rng);
    const auto ops = [&](bool composed) {
      const Form form(composed);
      OpNames names;
      Tape tape(&names);
      Connection on_tape = c;
      for_each_param(on_tape, [&](const std::string&, Var& p) { p = tape.watch(p.value()); });
      on_tape.close(on_tape(on_tape.open(tape.watch(x)), [](const Var& h) { return tanh(h); }));
      return names.names;
    };
    const bool plain = text == "residual" || text == "layer-scale" || text == "rezero";
    EXPECT_EQ(testing::Value(ops(false), Contains(fused_ops)), !plain) << text;
    EXPECT_THAT(ops(true), Not(Contains(fused_ops))) << text;
  }
}

TEST(MixStreams, HasARuleButForBf16) {
  const HigherOrder scope;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    OpNames names;
    Tape tape(&names);
    mix_streams(tape.watch(ones({2, 3})), tape.watch(ones({3, 4}, dtype)));
    EXPECT_EQ(testing::Value(names.names, Contains("mix_streams")), dtype == DType::f32);
  }
}

TEST(Connection, ReportsBadSettingsInTheWordsOfItsModule) {
  Rng rng(1);
  for (const std::string text :
       {"hc", "mhc", "manifold", "mhc-layer", "deepseek-v4", "hunyuan-v4", "gated", "single-pass", "frac"}) {
    ConnectionConfig config = config_of(text);
    config.streams = 0;
    EXPECT_THAT([&] { Connection(config, 8, 0, rng); }, ThrowsMessage<ValueError>(HasSubstr("must be >= 1 but is 0")));
  }
  ConnectionConfig laurel = config_of("laurel"), scale = config_of("layer-scale");
  laurel.laurel_rank = 9;
  EXPECT_THAT([&] { Connection(laurel, 8, 0, rng); }, ThrowsMessage<ValueError>(HasSubstr("rank must be in [1, 8]")));
  scale.scale_init = INFINITY;
  EXPECT_THAT([&] { Connection(scale, 8, 0, rng); }, ThrowsMessage<ValueError>(HasSubstr("initial finite")));
}

TEST(Connection, RefusesAStreamOfAnotherKind) {
  Rng rng(1);
  const Connection residual(config_of("residual"), 8, 0, rng), mhc(config_of("mhc"), 8, 0, rng);
  EXPECT_THAT([&] { mhc(residual.open(zeros({8}, DType::f64)), [](const Var& h) { return h; }); },
              ThrowsMessage<Error>(HasSubstr("the stream was made by a connection of another kind")));
}

TEST(Connection, CutsTheHistoryOfSkipWhenAskedTo) {
  Rng rng(1);
  ConnectionConfig config = config_of("skip");
  config.skip.detach_history = true;
  const Network network(config, 4, 1, rng);
  const auto alone = [&](const Var& x) { return network.layers[0](rms_norm(x, 1e-5)); };
  const Tensor x = random({2, 4}, rng), dy = random({2, 4}, rng);
  EXPECT_LT(largest_difference(vjp(network, dy, x)[0], vjp(alone, dy, x)[0]), 1e-15);
}

TEST(Connection, ProjectsSkipWeightsAfterAStep) {
  Rng rng(1);
  ConnectionConfig config = config_of("skip");
  config.skip.projection = SkipProjection::post_step;
  Network network(config, 4, 3, rng);
  randomize(network, rng);
  project(network);
  for (const Connection& c : network.connections)
    EXPECT_NEAR(sum(std::get<MHCSkip>(c.module).mixing_logits).value().item(), 1, 1e-14);
}

TEST(Connection, GivesMuonItsMapsAndAdamWTheRest) {
  std::set<std::string> matrices, others;
  for (const std::string_view kind : connection_names())
    for (const StreamHead head : {StreamHead::own, StreamHead::weighted, StreamHead::gated, StreamHead::attention})
      for (const bool embedded : {false, true}) {
        if (head != StreamHead::own && kind != "mhc" && kind != "single-pass") continue;
        Rng rng(1);
        ConnectionConfig config{.kind = connection_kind(kind)};
        config.head = head;
        config.stream_embedding = embedded;
        config.sublayers = 1;
        for_each_param(Connection(config, 128, 0, rng), [&](const std::string& name, const Var& p) {
          if (p.rank() >= 2) (nn::hidden_matrices("connection." + name, p.value()) ? matrices : others).insert(name);
        });
      }
  EXPECT_THAT(matrices, ElementsAre("block_inject_weight.weight", "down", "fn", "input_mix_weight_down.weight",
                                    "input_mix_weight_up.weight", "phi", "theta", "theta_post", "theta_res", "up"));
  EXPECT_THAT(others,
              ElementsAre("b_post", "b_pre", "b_res", "h_res_raw", "head.fn", "head.input_mix_weight_down.weight",
                          "head.input_mix_weight_up.weight", "head.logits", "stream_embedding"));
}

}  // namespace
}  // namespace braid::mhc::connection_test
