// Activations of bf16 with parameters of f32.
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/core/batch_invariant.h>
#include <braid/nn/convert.h>
#include <braid/nn/lora.h>
#include <braid/nn/transformer.h>
#include <tests/support.h>

namespace braid::nn::mixed_precision_test {
namespace {

const TransformerConfig kConfig{
    .vocab = 65, .context = 32, .channels = 64, .layers = 2, .heads = 4, .dtype = DType::bf16};

const TransformerConfig kOtherConfig{.vocab = 65,
                                     .context = 32,
                                     .channels = 64,
                                     .layers = 2,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .norm = NormKind::layer,
                                     .positions = PositionKind::rotary,
                                     .qk_norm = true,
                                     .value_residual = true,
                                     .activation = Activation::swiglu,
                                     .attention_bias = true,
                                     .tied_head = true,
                                     .dtype = DType::bf16};

struct Batch {
  Tensor tokens, targets;

  explicit Batch(Rng& rng)
      : tokens(randint(0, kConfig.vocab, {4, 32}, rng)), targets(randint(0, kConfig.vocab, {4, 32}, rng)) {}
};

auto evaluate(const Transformer<>& model, const Batch& batch) {
  return value_and_grad([&](const Transformer<>& m) { return m.loss(batch.tokens, batch.targets); })(model);
}

double cosine(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += x[i] * y[i];
    xx += x[i] * x[i];
    yy += y[i] * y[i];
  }
  return xy / std::sqrt(xx * yy);
}

TEST(MixedPrecision, KeepsParametersGradientsAndLossesInF32) {
  Rng rng(1);
  const Transformer<> model(kConfig, rng);
  const Batch batch(rng);
  for_each_param(model, [](const std::string& name, const Var& p) { EXPECT_EQ(p.dtype(), DType::f32) << name; });
  EXPECT_EQ(model.logits(batch.tokens).dtype(), DType::bf16);
  EXPECT_EQ(model.loss(batch.tokens, batch.targets).dtype(), DType::f32);
  const auto [loss, grads] = evaluate(model, batch);
  for_each_param(grads, [](const std::string& name, const Var& g) { EXPECT_EQ(g.dtype(), DType::f32) << name; });
}

TEST(MixedPrecision, HasTheGradientsOfF64) {
  Rng rng(2);
  for (const TransformerConfig& config : {kConfig, kOtherConfig}) {
    const Transformer<> model(config, rng);
    const Batch batch(rng);
    const auto [loss, grads] = evaluate(model, batch);
    const auto [exact_loss, exact] = evaluate(to_dtype(model, DType::f64), batch);  // in which nothing is bf16
    EXPECT_NEAR(loss, exact_loss, 2e-3);
    EXPECT_NE(static_cast<float>(exact_loss), static_cast<float>(loss));
    const auto [names, gradients] = [&] {
      std::vector<std::string> all_names;
      std::vector<Tensor> all;
      for_each_param(grads, [&](const std::string& name, const Var& g) {
        all_names.push_back(name);
        all.push_back(g.value());
      });
      return std::pair(all_names, all);
    }();
    std::size_t i = 0;
    for_each_param(exact, [&, &names = names, &gradients = gradients](const std::string&, const Var& g) {
      EXPECT_GE(cosine(gradients[i], g.value()), g.value().numel() > 1000 ? 0.9999 : 0.999) << names[i];
      ++i;
    });
  }
}

TEST(MixedPrecision, HasTheSameBitsForAnyNumberOfThreads) {
  Rng rng(3);
  const Transformer<> model(kConfig, rng);
  const Batch batch(rng);
  std::optional<std::pair<double, std::vector<Tensor>>> expected;
  for (const int threads : {1, 2, 3, 8}) {
    const WithThreads some(threads);
    const auto [loss, grads] = evaluate(model, batch);
    std::vector<Tensor> all;
    for_each_param(grads, [&](const std::string&, const Var& g) { all.push_back(g.value()); });
    if (!expected) expected = {loss, all};
    EXPECT_EQ(loss, expected->first);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(identical(all[i], expected->second[i])) << threads;
  }
}

TEST(MixedPrecision, ReadsOnFromItsCacheWithTheSameBits) {
  Rng rng(4);
  const Transformer<> model(kConfig, rng);
  const Tensor tokens = randint(0, kConfig.vocab, {1, 20}, rng);
  const BatchInvariant invariant;
  const Tensor all = model.logits(tokens);
  KVCache cache = model.make_cache(1);
  for (std::int64_t t = 0; t < 20; ++t) {
    const Tensor next = model.next_logits(tokens.slice(1, t, t + 1), cache);
    EXPECT_EQ(next.dtype(), DType::bf16);
    EXPECT_TRUE(identical(next, all.select(1, t).contiguous())) << t;
  }
}

TEST(MixedPrecision, InBF16HasTheBitsOfWeightsRoundedByEveryProduct) {
  Rng rng(6);
  for (const TransformerConfig& config : {kConfig, kOtherConfig}) {
    const Transformer<> model(config, rng);
    const Tensor tokens = Batch(rng).tokens, expected = model.logits(tokens);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Transformer<> of_dtype = model;
      of_dtype.config.dtype = dtype;
      add_lora(of_dtype, rng, {.rank = 2});  // is not rounded
      const Transformer<> rounded = of_dtype.in_bf16();
      EXPECT_TRUE(identical(rounded.logits(tokens), expected));
      EXPECT_EQ(of_dtype.config.dtype, dtype);
      std::vector<std::string> wide;
      for_each_param(rounded, [&](const std::string& name, const Var& p) {
        if (p.dtype() == DType::f32 && p.rank() == 2 && !in_lora(name)) wide.push_back(name);
      });
      const bool learned = config.positions == PositionKind::learned;
      EXPECT_EQ(wide, learned ? std::vector<std::string>({"embedding.weight", "positions"})
                              : std::vector<std::string>({"embedding.weight"}));
    }
    for (const DType dtype : {DType::f64, DType::bf16})
      EXPECT_THROW(to_dtype(model, dtype).in_bf16(), DTypeError) << name(dtype);
  }
}

TEST(MixedPrecision, ComputesWithParametersOfBF16Too) {
  Rng rng(5);
  const Transformer<> model = to_dtype(Transformer<>(kConfig, rng), DType::bf16);
  const Batch batch(rng);
  const auto [loss, grads] = evaluate(model, batch);
  EXPECT_NEAR(loss, std::log(65.0), 0.1);
  for_each_param(grads, [](const std::string& name, const Var& g) { EXPECT_EQ(g.dtype(), DType::bf16) << name; });
}

}  // namespace
}  // namespace braid::nn::mixed_precision_test
