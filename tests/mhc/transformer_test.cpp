// The reference transformer with every connection, chosen at run time.
#include <braid/nn/transformer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/core/batch_invariant.h>
#include <braid/mhc/connection.h>
#include <braid/mhc/connections/history/mhc_block.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/verify/precision_report.h>
#include <tests/mhc/support.h>

namespace braid::mhc::transformer_test {
namespace {

using testing::Contains;
using Model = nn::Transformer<Connection>;

nn::TransformerConfig small() {
  return {.vocab = 11, .context = 8, .channels = 8, .layers = 2, .heads = 2, .dtype = DType::f64};
}

Model make(const char* connection, Rng& rng) {
  const ConnectionConfig config{.kind = connection_kind(connection), .dtype = DType::f64};
  return Model(small(), rng, [&](int index) { return Connection(config, 8, index, rng); });
}

TEST(TransformerConnections, TrainUnderEveryConnection) {
  for (const char* connection : {"residual", "hc", "mhc", "manifold", "mhc-layer", "skip", "attention-residual", "frac",
                                 "layer-scale", "rezero", "laurel"}) {
    Rng rng(1);
    Model model = make(connection, rng);
    const Tensor tokens = randint(0, 11, {2, 8}, rng), targets = randint(0, 11, {2, 8}, rng);
    nn::AdamW optimizer({.lr = 3e-3});
    const auto step = value_and_grad([&](const Model& m) { return m.loss(tokens, targets); });
    const double before = step(model).first;
    for (int i = 0; i < 30; ++i) {
      optimizer.step(model, step(model).second);
      project(model);
    }
    EXPECT_LT(step(model).first, before - 0.1) << connection;
  }
}

TEST(TransformerConnections, StartEqualToTheResidualTransformerWithMHCAndHC) {
  Rng rng(1);
  const nn::Transformer<> residual(small(), rng);
  const Tensor tokens = randint(0, 11, {2, 8}, rng);
  for (const char* connection : {"residual", "hc", "mhc", "frac", "laurel"}) {
    Rng same(1);
    EXPECT_LT(largest_difference(make(connection, same).logits(tokens).value(), residual.logits(tokens).value()), 1e-13)
        << connection;
  }
}

TEST(TransformerConnections, TakeNoWeightDecayUnderTheRuleByName) {
  for (const char* connection : {"hc", "mhc", "manifold", "mhc-layer", "skip", "attention-residual", "frac",
                                 "layer-scale", "rezero", "laurel"}) {
    Rng rng(1);
    int seen = 0;
    for_each_param(make(connection, rng), [&](const std::string& name, const Var& p) {
      if (name.find(".connection.") == std::string::npos) return;
      EXPECT_FALSE(nn::decay_weights_only(name, p.value())) << connection << ": " << name;
      ++seen;
    });
    EXPECT_GT(seen, 0) << connection;
  }
  EXPECT_TRUE(nn::decay_weights_only("blocks.0.attention.q.weight", zeros({8, 8})));
}

TEST(TransformerConnections, NameTheirParametersBelowTheirSublayer) {
  Rng rng(1);
  EXPECT_THAT(param_names(make("mhc", rng)), Contains("blocks.1.mlp.connection.phi"));
  EXPECT_THAT(param_names(make("manifold", rng)), Contains("blocks.0.attention.connection.h_res_raw"));
}

// The errors of single ops explain that of the gradient although the vjps of writes leave a part to those of reads.
TEST(TransformerConnections, ExplainTheErrorsOfTheirGradients) {
  for (const std::string_view connection : connection_names()) {
    Rng rng(1);
    const ConnectionConfig config{.kind = connection_kind(connection), .phi_std = 0.1, .keep_every = 2};
    nn::TransformerConfig sizes = small();
    sizes.dtype = DType::f32;
    const Model model(sizes, rng, [&](int index) { return Connection(config, 8, index, rng); });
    const Tensor tokens = randint(0, 11, {2, 8}, rng), targets = randint(0, 11, {2, 8}, rng);
    const auto report = nn::precision_report(model, [&](const Model& m) { return m.loss(tokens, targets); });
    EXPECT_GT(report.relative_error, 1e-8) << connection;
    EXPECT_LT(report.relative_error, 1e-5) << connection;
    EXPECT_LT(report.remainder, 1e-4) << connection;
    EXPECT_EQ(report.rows.size(), param_names(model).size());
    if (connection == "mhc") {
      const auto named = [](const char* op) { return testing::Field(&nn::PrecisionReport::Op::name, op); };
      EXPECT_THAT(report.ops, Contains(named("mhc_write_read")));
      EXPECT_THAT(report.ops, Contains(named("write_streams")));
    }
  }
}

// What a connection computes for a token depends on that token alone, so a cache of keys and values is enough.
TEST(TransformerConnections, ReadOnFromACache) {
  const std::int64_t length = 70;
  for (const std::string_view connection : connection_names())
    for (const bool composed : {false, true}) {
      const Form form(composed);
      Rng rng(1);
      ConnectionConfig config{.kind = connection_kind(connection), .phi_std = 0.1, .dtype = DType::f64};
      nn::TransformerConfig sizes = small();
      sizes.context = length;
      Model model(sizes, rng, [&](int index) { return Connection(config, 8, index, rng); });
      for_each_param(
          model, [&](const std::string&, Var& p) { p = (p + 0.2 * Var(randn(p.shape(), rng, DType::f64))).value(); });
      const Tensor tokens = randint(0, 11, {2, length}, rng);
      const BatchInvariant same_bits;
      const Tensor whole = model.logits(tokens).value();
      nn::KVCache cache = model.make_cache(2);
      for (const std::int64_t count : {1, 33, 1, 1, 34}) {
        const std::int64_t end = cache.length + count;
        const Tensor logits = model.next_logits(tokens.slice(1, cache.length, end).clone(), cache);
        EXPECT_LT(largest_difference(logits, whole.select(1, end - 1).clone()), 1e-12) << connection << " " << end;
        EXPECT_TRUE(identical(logits, whole.select(1, end - 1).clone())) << connection << " " << end;
      }
    }
}

}  // namespace
}  // namespace braid::mhc::transformer_test
