// Every error that a docstring of nn names, but for those of files: see tests/throws.h.
#include <tests/throws.h>

#include <braid/autograd/ops.h>
#include <braid/nn/attention.h>
#include <braid/nn/compressor.h>
#include <braid/nn/conv1d.h>
#include <braid/nn/conv2d.h>
#include <braid/nn/convert.h>
#include <braid/nn/embedding.h>
#include <braid/nn/experts.h>
#include <braid/nn/gru.h>
#include <braid/nn/init.h>
#include <braid/nn/kv_cache.h>
#include <braid/nn/lora.h>
#include <braid/nn/optim/accumulate.h>
#include <braid/nn/optim/adafactor.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/clip.h>
#include <braid/nn/optim/lion.h>
#include <braid/nn/optim/muon.h>
#include <braid/nn/optim/schedule.h>
#include <braid/nn/optim/sgd.h>
#include <braid/nn/sampling.h>
#include <braid/nn/subset.h>
#include <braid/nn/transformer.h>
#include <braid/nn/verify/precision_report.h>

namespace braid::nn::throws_test {
namespace {

const Tensor kX = ones({1, 2, 4}), kTokens = zeros({1, 2}, DType::i32);
const double kInf = std::numeric_limits<double>::infinity();

TEST(NNThrows, Constructors) {
  Rng rng;
  throws<ValueError>("nn::Linear::Linear", [&] { Linear(0, 1, rng); });
  throws<ValueError>("nn::Linear::Linear", [&] { Linear(1, 0, rng); });
  throws<ValueError>("nn::GroupedLinear::GroupedLinear", [&] { GroupedLinear(0, 1, 1, rng); });
  throws<ValueError>("nn::GroupedLinear::GroupedLinear", [&] { GroupedLinear(1, 0, 1, rng); });
  throws<ValueError>("nn::GroupedLinear::GroupedLinear", [&] { GroupedLinear(1, 1, 0, rng); });
  throws<ValueError>("nn::Embedding::Embedding", [&] { Embedding(0, 1, rng); });
  throws<ValueError>("nn::Embedding::Embedding", [&] { Embedding(1, 0, rng); });
  throws<ValueError>("nn::Conv1d::Conv1d", [&] { Conv1d(0, 1, 1, rng); });
  throws<ValueError>("nn::Conv1d::Conv1d", [&] { Conv1d(1, 0, 1, rng); });
  throws<ValueError>("nn::Conv1d::Conv1d", [&] { Conv1d(1, 1, 0, rng); });
  throws<ValueError>("nn::Conv1d::Conv1d", [&] { Conv1d(3, 2, 1, rng, {.groups = 2}); });
  throws<ValueError>("nn::Conv1d::Conv1d", [&] { Conv1d(2, 3, 1, rng, {.groups = 2}); });
  throws<ValueError>("nn::Conv2d::Conv2d", [&] { Conv2d(0, 1, 1, rng); });
  throws<ValueError>("nn::Conv2d::Conv2d", [&] { Conv2d(1, 0, 1, rng); });
  throws<ValueError>("nn::Conv2d::Conv2d", [&] { Conv2d(1, 1, {1, 0}, rng); });
  throws<ValueError>("nn::Conv2d::Conv2d", [&] { Conv2d(3, 2, 1, rng, {.groups = 2}); });
  throws<ValueError>("nn::GRU::GRU", [&] { GRU(0, 1, rng); });
  throws<ValueError>("nn::GRU::GRU", [&] { GRU(1, 0, rng); });
  throws<ValueError>("nn::MLP::MLP", [&] { MLP(0, 1, rng); });
  throws<ValueError>("nn::MLP::MLP", [&] { MLP(1, 0, rng); });
  throws<ValueError>("nn::MLP::MLP", [&] { MLP(1, 1, rng, {.limit = 1}); });
  throws<ValueError>("nn::MLP::MLP", [&] { MLP(1, 1, rng, {.activation = Activation::swiglu, .limit = -1}); });
  throws<ValueError>("nn::Norm::Norm", [] { RMSNorm(0); });
  throws<ValueError>("nn::Norm::Norm", [] { LayerNorm(1, {.eps = -1}); });
  throws<ValueError>("nn::GroupNorm::GroupNorm", [] { GroupNorm(2, 3); });
  throws<ValueError>("nn::GroupNorm::GroupNorm", [] { GroupNorm(1, 0); });
  throws<ValueError>("nn::GroupNorm::GroupNorm", [] { GroupNorm(1, 1, {.eps = -1}); });
  throws<ValueError>("nn::Experts::Experts", [&] { Experts(0, 1, rng); });
  throws<ValueError>("nn::Experts::Experts", [&] { Experts(1, 0, rng); });
  throws<ValueError>("nn::Experts::Experts", [&] { Experts(1, 1, rng, {.experts = 0}); });
  throws<ValueError>("nn::Experts::Experts", [&] { Experts(1, 1, rng, {.experts = 1}); });
}

TEST(NNThrows, Settings) {
  throws<ValueError>("nn::checked", [] { checked("module", CompressionSettings{.rate = -1}); });
  throws<ValueError>("nn::checked", [] { checked("module", CompressionSettings{.rate = 2, .index_top = 1}); });
  throws<ValueError>("nn::checked", [] { checked(ExpertsSettings{.experts = 0}); });
  throws<ValueError>("nn::checked", [] { checked(ExpertsSettings{.shared = -1}); });
  throws<ValueError>("nn::checked", [] { checked(ExpertsSettings{.by_token = -1}); });
  throws<ValueError>("nn::checked", [] { checked(ExpertsSettings{.top = 9}); });
  throws<ValueError>("nn::checked", [] { checked(ExpertsSettings{.correction = true, .by_token = 5}); });
  throws<ValueError>("nn::checked", [] { checked(SamplingSettings{.temperature = 0}); });
  throws<ValueError>("nn::checked", [] { checked(SamplingSettings{.top_k = -1}); });
  throws<ValueError>("nn::checked", [] { checked(SamplingSettings{.top_p = 0}); });
  throws<ValueError>("nn::checked", [] { checked(TransformerConfig{.heads = 3}); });
  RotaryScaling scaling{.kind = RotaryScaling::Kind::yarn, .factor = 0.5};
  throws<ValueError>("nn::checked", [&] { checked(scaling); });
  throws<ValueError>("nn::scaled_turns", [&] { scaled_turns(1, 1, scaling); });
  throws<ValueError>("nn::scaled_turns", [] { scaled_turns(1, 0, {}); });
  scaling = {.kind = RotaryScaling::Kind::yarn, .first_context = 0};
  throws<ValueError>("nn::checked", [&] { checked(scaling); });
  scaling = {.kind = RotaryScaling::Kind::yarn, .slow = 4, .fast = 4};
  throws<ValueError>("nn::checked", [&] { checked(scaling); });
}

TEST(NNThrows, NothingForTheSmallestSizes) {
  Rng rng;
  EXPECT_NO_THROW(GroupedLinear(1, 1, 1, rng));
  EXPECT_NO_THROW(Conv1d(1, 1, 1, rng));
  EXPECT_NO_THROW(Conv2d(1, 1, 1, rng));
  EXPECT_NO_THROW(GRU(1, 1, rng));
  EXPECT_NO_THROW(GroupNorm(1, 1, {.eps = 0}));
  EXPECT_NO_THROW(MultiHeadAttention(1, 1, rng, {.output_groups = 1, .output_rank = 1}));
  const TransformerConfig least{
      .vocab = 1, .context = 1, .channels = 1, .layers = 1, .heads = 1, .mlp_ratio = 1, .hidden = 1, .norm_eps = 0};
  EXPECT_NO_THROW(Transformer<>(least, rng));
}

TEST(NNThrows, Attention) {
  Rng rng;
  const auto make = [&](const AttentionSettings& settings) { MultiHeadAttention(4, 2, rng, settings); };
  throws<ValueError>("nn::MultiHeadAttention::MultiHeadAttention", [&] { MultiHeadAttention(4, 3, rng); });
  throws<ValueError>("nn::MultiHeadAttention::MultiHeadAttention", [&] { make({.kv_heads = 3}); });
  throws<ValueError>("nn::MultiHeadAttention::MultiHeadAttention", [&] { make({.output_groups = 3}); });
  throws<ValueError>("nn::MultiHeadAttention::MultiHeadAttention", [&] { make({.rotary = true, .head_size = 3}); });
  throws<ValueError>("nn::MultiHeadAttention::MultiHeadAttention", [&] { make({.dropout = 1}); });
  throws<ValueError>("nn::MultiHeadAttention::MultiHeadAttention", [&] { make({.compression = {.rate = 2}}); });
  throws<ValueError>("nn::MultiHeadAttention::MultiHeadAttention", [&] { make({.causal = false, .shared_kv = true}); });
  const MultiHeadAttention causal(4, 2, rng, {.window = 1}), encoder(4, 2, rng, {.causal = false});
  const MultiHeadAttention compressed(4, 2, rng,
                                      {.rotary = true, .kv_heads = 1, .shared_kv = true, .compression = {.rate = 2}});
  throws<ShapeError>("nn::MultiHeadAttention::operator()", [&] { causal(ones({4})); });
  throws<ValueError>("nn::MultiHeadAttention::operator()", [&] { causal(kX, {.memory = kX}); });
  throws<ValueError>("nn::MultiHeadAttention::operator()", [&] { compressed(kX, {.mask = ones({1})}); });
  LayerCache cache;
  const Tensor keys = ones({1, 200, 2, 2}), key = ones({1, 1, 2, 2});
  throws<ValueError>("nn::MultiHeadAttention::check_cache", [&] { encoder.check_cache(cache, 0); });
  cache.write(0, keys, keys, 1);
  cache.write(200, key, key, 1);
  throws<ValueError>("nn::MultiHeadAttention::check_cache", [&] { causal.check_cache(cache, 1); });
  throws<ValueError>("nn::MultiHeadAttention::operator()", [&] { causal(kX, cache, 1); });
  throws<ValueError>("nn::PositionCache::check", [&] { cache.check(1, 1); });
  throws<ValueError>("nn::PositionCache::check", [&] { cache.check(-1, 0); });
  throws<ValueError>("nn::PositionCache::check", [&] { cache.check(202, 1); });
  throws<ValueError>("nn::PositionCache::write", [&] { cache.write(1, key, key, 1); });
  throws<ShapeError>("nn::PositionCache::write", [&] { cache.write(201, keys.reshape({200, 1, 2, 2}), key, 1); });
  throws<ShapeError>("nn::PositionCache::write", [&] { cache.write(201, key, key.to(DType::f64), 1); });
}

TEST(NNThrows, Layers) {
  Rng rng;
  const Experts routed(4, 4, rng, {.experts = 2}), by_token(4, 4, rng, {.experts = 2, .by_token = 5});
  Experts corrected(4, 4, rng, {.experts = 2, .correction = true}), plain = routed;
  const GRU gru(4, 2, rng);
  throws<ShapeError>("nn::GroupedLinear::operator()", [&] { GroupedLinear(2, 3, 1, rng)(kX); });
  throws<ShapeError>("nn::GRU::operator()", [&] { gru(ones({2, 4})); });
  throws<ShapeError>("nn::GRU::operator()", [&] { gru(kX, ones({2, 2})); });
  throws<ShapeError>("nn::Experts::route", [&] { routed.route(kX, kTokens); });
  throws<ValueError>("nn::Experts::route", [&] { routed.route(kX, full({2, 2}, 2, DType::i32)); });
  throws<DTypeError>("nn::Experts::route", [&] { routed.route(kX, ones({2, 2})); });
  throws<ValueError>("nn::Experts::operator()", [&] { by_token(kX); });
  throws<ValueError>("nn::Experts::operator()", [&] { by_token(kX, full({1, 2}, 5, DType::i32)); });
  throws<ShapeError>("nn::Experts::operator()", [&] { by_token(kX, zeros({1, 3}, DType::i32)); });
  throws<DTypeError>("nn::Experts::operator()", [&] { by_token(kX, zeros({1, 2})); });
  throws<ValueError>("nn::Experts::rebalance", [&] { plain.rebalance(std::vector<std::int64_t>{1, 1}, 0.1); });
  throws<ShapeError>("nn::Experts::rebalance", [&] { corrected.rebalance(std::vector<std::int64_t>{1}, 0.1); });
  throws<ShapeError>("nn::init::xavier_normal", [&] { init::xavier_normal({2}, rng); });
  throws<ShapeError>("nn::init::xavier_uniform", [&] { init::xavier_uniform({2}, rng); });
  throws<ShapeError>("nn::init::kaiming_normal", [&] { init::kaiming_normal({2}, rng); });
  throws<ShapeError>("nn::init::kaiming_uniform", [&] { init::kaiming_uniform({2}, rng); });
  throws<ShapeError>("nn::sample", [&] { sample(ones({2, 2}), {}, rng); });
  throws<ValueError>("nn::sample", [&] { sample(ones({2}), {.temperature = 0}, rng); });
  throws<ValueError>("nn::sample", [&] { sample(full({2}, std::nan("")), {}, rng); });
  throws<ValueError>("nn::sample", [&] { sample(full({2}, kInf), {}, rng); });
  throws<ValueError>("nn::sample", [&] { sample(full({2}, -kInf), {}, rng); });
  throws<ShapeError>("nn::most_likely", [] { most_likely(ones({2, 2})); });
  throws<ValueError>("nn::most_likely", [] { most_likely(full({2}, -kInf)); });
}

TEST(NNThrows, Models) {
  Rng rng;
  Transformer<> model({.vocab = 8, .context = 4, .channels = 4, .layers = 1, .heads = 2}, rng);
  const Transformer<> windowed({.context = 300, .channels = 4, .layers = 1, .heads = 2, .window = 1}, rng);
  KVCache cache = model.make_cache(1, 1), forgetful = windowed.make_cache(1);
  throws<ValueError>("nn::Transformer::Transformer", [&] { Transformer<>({.heads = 3}, rng); });
  throws<ShapeError>("nn::Transformer::Transformer", [&] { Transformer<>({.vocab = std::int64_t{1} << 60}, rng); });
  throws<ShapeError>("nn::Transformer::logits", [&] { model.logits(zeros({1, 5}, DType::i32)); });
  throws<DTypeError>("nn::Transformer::logits", [&] { model.logits(ones({1, 2})); });
  throws<DTypeError>("nn::Transformer::in_bf16", [&] { to_dtype(model, DType::f64).in_bf16(); });
  throws<ValueError>("nn::Transformer::logits", [&] { model.logits(full({1, 2}, 8, DType::i32)); });
  throws<ShapeError>("nn::Transformer::embed", [&] { model.embed(kTokens, 3); });
  throws<DTypeError>("nn::Transformer::embed", [&] { model.embed(ones({1, 2})); });
  throws<ValueError>("nn::Transformer::embed", [&] { model.embed(full({1, 2}, 8, DType::i32)); });
  throws<ValueError>("nn::Transformer::make_cache", [&] { model.make_cache(0); });
  throws<ValueError>("nn::Transformer::make_cache", [&] { model.make_cache(1, 5); });
  throws<ShapeError>("nn::Transformer::next_logits", [&] { model.next_logits(kTokens, cache); });
  throws<DTypeError>("nn::Transformer::next_logits", [&] { model.next_logits(ones({1, 1}), cache); });
  throws<ValueError>("nn::Transformer::next_logits", [&] { model.next_logits(full({1, 1}, 8, DType::i32), cache); });
  for (const std::int64_t length : {200, 1}) windowed.next_logits(zeros({1, length}, DType::i32), forgetful);
  forgetful.length = 1;
  throws<ValueError>("nn::Transformer::next_logits", [&] { windowed.next_logits(kTokens, forgetful); });
  throws<ValueError>("nn::add_lora", [&] { add_lora(model, rng, {.rank = 0}); });
  throws<ValueError>("nn::add_lora", [&] { add_lora(model, rng, {.chosen = [](auto) { return false; }}); });
  add_lora(model, rng);
  throws<ValueError>("nn::add_lora", [&] { add_lora(model, rng); });
  throws<ValueError>("nn::subset", [&] { subset(model, [](auto) { return false; }); });
  throws<ValueError>("nn::with", [&] { with(model, Subset{{{"none", kX}}}); });
  throws<Error>("nn::assign_by_name", [] { assign_by_name("source", {}, {{"unexpected", kX}}); });
  throws<Error>("nn::from_tensors", [&] { from_tensors(model, {}); });
  const auto loss = [&](const auto& m) { return sum(m.weight); };
  const Linear linear(2, 2, rng);
  throws<ShapeError>("nn::precision_report", [&] { precision_report(linear, [](auto& m) { return m.weight; }); });
  throws<Error>("nn::precision_report",
                [&] { precision_report(linear, [&](auto& m) { return rng.uniform() * loss(m); }); });
  throws<Error>("nn::precision_report", [&] {
    precision_report(linear, [&](auto& m, DType dtype) { return dtype == DType::f64 ? loss(m) : -loss(m); });
  });
}

/// An optimizer of one's own.
struct Own : Optimizer {
  using Optimizer::check_fraction, Optimizer::check_nonnegative;

  explicit Own(double lr) : Optimizer("Own", lr, {}) {}
  void apply(const std::vector<Update>&, double) override {}
};

struct Tied {
  Var a = Tensor(kX), b = a;
  void params(auto&& visit) {
    visit("a", a);
    visit("b", b);
  }
};

TEST(NNThrows, Optimizers) {
  const double nan = std::nan("");
  Rng rng;
  Own own(1);
  SGD sgd({.momentum = 0.5});
  Linear linear(2, 2, rng);
  const Linear other(2, 3, rng), doubles(2, 2, rng, {.dtype = DType::f64});
  Tied tied;
  throws<ValueError>("nn::Optimizer::Optimizer", [] { Own(-1); });
  throws<ValueError>("nn::Optimizer::set_lr", [&] { own.set_lr(kInf); });
  throws<ValueError>("nn::Optimizer::check_nonnegative", [&] { own.check_nonnegative("setting", -1); });
  throws<ValueError>("nn::Optimizer::check_fraction", [&] { own.check_fraction("setting", 1); });
  throws<ShapeError>("nn::Optimizer::step", [&] { sgd.step(linear, other); });
  throws<DTypeError>("nn::Optimizer::step", [&] { sgd.step(linear, doubles); });
  throws<Error>("nn::Optimizer::step", [&] { sgd.step(tied, Tied(tied)); });
  sgd.step(linear, Linear(linear));
  throws<Error>("nn::Optimizer::step", [&, more = other]() mutable { sgd.step(more, Linear(more)); });
  throws<Error>("nn::Optimizer::load_state", [&] { sgd.load_state(linear, {}); });
  throws<ValueError>("nn::SGD::SGD", [] { SGD({.lr = -1}); });
  throws<ValueError>("nn::SGD::SGD", [] { SGD({.momentum = 1}); });
  throws<ValueError>("nn::SGD::SGD", [] { SGD({.nesterov = true}); });
  throws<ValueError>("nn::SGD::SGD", [&] { SGD({.weight_decay = nan}); });
  throws<ValueError>("nn::AdamOptimizer::AdamOptimizer", [] { Adam({.lr = kInf}); });
  throws<ValueError>("nn::AdamOptimizer::AdamOptimizer", [] { AdamW({.beta1 = 1}); });
  throws<ValueError>("nn::AdamOptimizer::AdamOptimizer", [] { AdamW({.beta2 = -1}); });
  throws<ValueError>("nn::AdamOptimizer::AdamOptimizer", [] { AdamW({.eps = -1}); });
  throws<ValueError>("nn::AdamOptimizer::AdamOptimizer", [] { AdamW({.weight_decay = -1}); });
  throws<ValueError>("nn::Lion::Lion", [] { Lion({.lr = -1}); });
  throws<ValueError>("nn::Lion::Lion", [] { Lion({.beta1 = 1}); });
  throws<ValueError>("nn::Lion::Lion", [] { Lion({.weight_decay = -1}); });
  throws<ValueError>("nn::Adafactor::Adafactor", [] { Adafactor({.lr = -1}); });
  throws<ValueError>("nn::Adafactor::Adafactor", [] { Adafactor({.beta2_decay = 1}); });
  throws<ValueError>("nn::Adafactor::Adafactor", [] { Adafactor({.clip = 0}); });
  throws<ValueError>("nn::Muon::Muon", [] { Muon({.adamw = {.lr = -1}}); });
  throws<ValueError>("nn::Muon::Muon", [] { Muon({.momentum = 1}); });
  throws<ValueError>("nn::Muon::Muon", [] { Muon({.iterations = 0}); });
  throws<ValueError>("nn::Muon::Muon", [] { Muon({.update_rms = -1}); });
  throws<ValueError>("nn::Muon::Muon", [&] { Muon({.matrices = decay_everything}).step(linear, Linear(linear)); });
  throws<ShapeError>("nn::orthogonalized", [] { orthogonalized(ones({2})); });
}

TEST(NNThrows, Training) {
  Rng rng;
  Linear grads(2, 2, rng);
  TreeSum<double> sum(2);
  Tensor total = ones({2});
  const Tensor other = ones({3}), doubles = ones({2}, DType::f64);
  const auto add = [&](const Tensor& term) { add_in_place(std::vector{&total}, std::vector<const Tensor*>{&term}); };
  throws<ValueError>("nn::place_in_tree", [] { place_in_tree(4, {1, 3}); });
  throws<ShapeError>("nn::add_in_place", [&] { add(other); });
  throws<DTypeError>("nn::add_in_place", [&] { add(doubles); });
  throws<ValueError>("nn::TreeSum::TreeSum", [] { TreeSum<double>(0); });
  throws<Error>("nn::TreeSum::total", [&] { static_cast<void>(TreeSum<double>(2).total()); });
  sum.add(0, 1.0);
  throws<ValueError>("nn::TreeSum::add", [&] { sum.add(0, 1.0); });
  throws<ValueError>("nn::TreeSum::add", [&] { sum.add(2, 1.0); });
  throws<ValueError>("nn::accumulate", [&] { accumulate(0, [&](std::int64_t) { return std::pair(1.0, grads); }); });
  throws<ValueError>("nn::clipping", [&] { clipping(grads, 0); });
  throws<ValueError>("nn::clip_grad_norm", [&] { clip_grad_norm(grads, -1); });
  throws<ValueError>("nn::constant_lr", [] { constant_lr(-1); });
  throws<ValueError>("nn::warmup_cosine", [] { warmup_cosine({.warmup = -1}); });
  throws<ValueError>("nn::warmup_cosine", [] { warmup_cosine({.warmup = 2, .total = 1}); });
  throws<ValueError>("nn::warmup_cosine", [] { warmup_cosine({.floor = -1}); });
  throws<ValueError>("nn::warmup_cosine", [] { warmup_cosine({.peak = 1, .floor = 2}); });
}

}  // namespace
}  // namespace braid::nn::throws_test
