#include <braid/nn/compressor.h>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/core/batch_invariant.h>
#include <braid/nn/attention.h>

#include "tests/nn/module_checks.h"
#include "tests/support.h"

namespace braid::nn::compressor_test {
namespace {

constexpr std::int64_t kChannels = 5, kSize = 6, kBatch = 2;

const RotaryTurns kTurns{.frequencies = rotary_frequencies(2), .trailing = true};

Compressor stirred(std::int64_t rate, bool overlapping, Rng& rng, DType dtype = DType::f64) {
  Compressor compressor(kChannels, kSize, {.rate = rate, .overlapping = overlapping}, 1e-6, rng, dtype);
  compressor.position_bias = randn(compressor.position_bias.shape(), rng, dtype);
  compressor.norm.weight = randn({kSize}, rng, dtype);
  return compressor;
}

/// Entry `i` of sequence `b`, from x [B, T, C], channel by channel.
std::vector<double> naive(const Compressor& m, const Tensor& x, std::int64_t b, std::int64_t i) {
  const Tensor kv = linear(x, m.kv.weight).value(), gate = linear(x, m.gate.weight).value();
  std::vector<double> mean;
  for (std::int64_t c = 0; c < kSize; ++c) {
    double weighted = 0, total = 0;
    const auto add = [&](std::int64_t window, std::int64_t channel) {
      for (std::int64_t j = 0; j < m.rate && window >= 0; ++j) {
        const std::int64_t t = window * m.rate + j;
        const double weight = std::exp(gate.at({b, t, channel}) + m.position_bias.value().at({j, channel}));
        weighted += weight * kv.at({b, t, channel});
        total += weight;
      }
    };
    if (m.overlapping) add(i - 1, c);
    add(i, m.overlapping ? kSize + c : c);
    mean.push_back(weighted / total);
  }
  double squares = 0;
  for (const double v : mean) squares += v * v / kSize;
  for (std::int64_t c = 0; c < kSize; ++c)
    mean[static_cast<std::size_t>(c)] *= m.norm.weight.value().at({c}) / std::sqrt(squares + 1e-6);
  for (std::size_t pair = 0; pair < 2; ++pair) {  // the last four channels turn by the position of the window
    const double angle = static_cast<double>(i * m.rate) * kTurns.frequencies[pair];
    double &first = mean[2 + 2 * pair], &second = mean[3 + 2 * pair];
    const double turned = first * std::cos(angle) - second * std::sin(angle);
    second = first * std::sin(angle) + second * std::cos(angle);
    first = turned;
  }
  return mean;
}

TEST(Compressor, MakesTheEntriesThatItsDefinitionSays) {
  Rng rng(1);
  for (const bool overlapping : {false, true})
    for (const std::int64_t rate : {1, 3, 4})
      for (const std::int64_t length : {1, 3, 4, 11}) {
        const Compressor compressor = stirred(rate, overlapping, rng);
        const Tensor x = randn({kBatch, length, kChannels}, rng, DType::f64);
        const Tensor entries = compressor(x, kTurns).value();
        ASSERT_EQ(entries.shape(), Shape({kBatch, length / rate, 1, kSize}));
        for (std::int64_t b = 0; b < kBatch; ++b)
          for (std::int64_t i = 0; i < length / rate; ++i)
            EXPECT_THAT(entries.select(0, b).select(0, i).clone().to_vector<double>(),
                        testing::Pointwise(testing::DoubleNear(1e-12), naive(compressor, x, b, i)))
                << rate << (overlapping ? " overlapping, " : ", ") << i;
      }
}

TEST(Compressor, TrainsAllItsParameters) {
  Rng rng(2);
  for (const bool overlapping : {false, true}) {
    const Tensor x = randn({kBatch, 7, kChannels}, rng, DType::f64);
    expect_gradients(stirred(3, overlapping, rng), [&](const Compressor& m) { return m(x, kTurns); });
  }
}

TEST(Compressor, ContinuesWithTheBitsOfAllPositionsAtOnce) {
  Rng rng(3);
  const BatchInvariant same_bits;
  constexpr std::int64_t kLength = 300;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool overlapping : {false, true})
      for (const std::int64_t rate : {1, 4, 70}) {
        const Compressor compressor = stirred(rate, overlapping, rng, compute_dtype(dtype));
        const Tensor x = randn({kBatch, kLength, kChannels}, rng).to(dtype), whole = compressor(x, kTurns).value();
        CompressionCache cache;
        for (std::int64_t at = 0, next = 5; at < kLength; at += next, next = std::min(1 + at % 90, kLength - at)) {
          const Tensor entries = compressor(Var(x.slice(1, at, at + next)), kTurns, cache, at, 100);
          ASSERT_TRUE(identical(entries, whole.slice(1, 0, (at + next) / rate))) << rate << " at " << at;
        }
        EXPECT_LT(cache.rows.keys(kLength).size(1), std::max<std::int64_t>(100, 2 * rate) + 64 + 90);
        EXPECT_EQ(compressor.kept(0), 0);  // all
        EXPECT_EQ(compressor.kept(100), std::max<std::int64_t>(100, 2 * rate));
        const std::int64_t back = kLength / rate * rate - 1;  // the last entry is forgotten and made anew
        EXPECT_TRUE(identical(compressor(Var(x.slice(1, back, kLength)), kTurns, cache, back, 100), whole));
      }
}

TEST(Indexer, TakesTheSmallestSizes) {
  Rng rng(3);
  const CompressionSettings smallest{.rate = 2, .overlapping = true, .index_heads = 1, .index_size = 4, .index_top = 1};
  AttentionSettings settings{
      .rotary = true, .kv_heads = 1, .shared_kv = true, .query_rank = 1, .compression = smallest};
  EXPECT_NO_THROW(MultiHeadAttention(8, 2, rng, settings)(zeros({1, 2, 8})));
  settings.compression.index_size = 3;
  EXPECT_THAT([&] { MultiHeadAttention(8, 2, rng, settings); },
              testing::ThrowsMessage<ValueError>(testing::HasSubstr("index_size must be at least the 4 channels")));
}

TEST(Indexer, ChoosesTheEntriesOfTheLargestScoresAmongThoseThatAreClosed) {
  Rng rng(4);
  const BatchInvariant first_of_equals;
  constexpr std::int64_t kRank = 3, kLength = 23, kRate = 2, kHeads = 3;
  for (const std::int64_t top : {1, 4, 11, 40}) {
    const CompressionSettings settings{
        .rate = kRate, .overlapping = true, .index_heads = kHeads, .index_size = kSize, .index_top = top};
    const Indexer indexer(kChannels, kRank, settings, 1e-6, rng, DType::f64);
    const Tensor x = randn({kBatch, kLength, kChannels}, rng, DType::f64);
    const Tensor latent = randn({kBatch, kLength, kRank}, rng, DType::f64);
    const Tensor entries = indexer.keys(x, kTurns).value(), seen = indexer(x, latent, entries, kTurns, 0);
    const Var queries = rotary_embedding(reshape(indexer.q(latent), {kBatch, kLength, kHeads, kSize}), kTurns);
    const Tensor by_head = indexer.weights(x).value();
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t t = 0; t < kLength; ++t) {
        std::vector<std::pair<double, std::int64_t>> order;
        for (std::int64_t i = 0; i < (t + 1) / kRate; ++i) {
          double score = 0;
          for (std::int64_t h = 0; h < kHeads; ++h) {
            double product = 0;
            for (std::int64_t c = 0; c < kSize; ++c)
              product += queries.value().at({b, t, h, c}) * entries.at({b, i, 0, c});
            score += by_head.at({b, t, h}) * std::max(product, 0.0);
          }
          order.emplace_back(-score, i);
        }
        std::sort(order.begin(), order.end());
        for (std::int64_t i = 0; i < kLength / kRate; ++i) {
          const auto end = order.begin() + std::min<std::int64_t>(std::ssize(order), top);
          const bool chosen = std::any_of(order.begin(), end, [&](const auto& each) { return each.second == i; });
          EXPECT_EQ(seen.at({b, t, i}), chosen ? 1 : 0) << "query " << t << ", entry " << i << ", top " << top;
        }
      }
  }
}

// Many heads, so that no scores are equal.
TEST(Indexer, ChoosesTheSameOfManyEntriesInABatchInvariantScope) {
  Rng rng(7);
  const CompressionSettings settings{.rate = 2, .index_heads = 16, .index_size = kSize, .index_top = 1};
  const Indexer indexer(kChannels, 3, settings, 1e-6, rng, DType::f64);
  const Tensor x = randn({1, 140, kChannels}, rng, DType::f64), latent = randn({1, 140, 3}, rng, DType::f64);
  const Tensor entries = indexer.keys(x, kTurns).value(), seen = indexer(x, latent, entries, kTurns, 0);
  const BatchInvariant first_of_equals;
  EXPECT_TRUE(identical(seen, indexer(x, latent, entries, kTurns, 0)));
}

TEST(Indexer, IsConstantWhereATapeKeepsNothingOfIt) {
  Rng rng(5);
  Tape tape;
  Indexer indexer(kChannels, 3, {.rate = 2, .index_heads = 2, .index_size = kSize}, 1e-6, rng, DType::f64);
  for_each_param(indexer, [&](const std::string&, Var& p) { p = tape.watch(p.value()); });
  for_each_param(indexer.constant(),
                 [](const std::string& name, const Var& p) { EXPECT_FALSE(p.requires_grad()) << name; });
}

TEST(Indexer, ChoosesAScoreThatIsNaNBeforeAllOthers) {
  Rng rng(6);
  const CompressionSettings settings{.rate = 2, .index_heads = 2, .index_size = kSize, .index_top = 1};
  const Indexer indexer(kChannels, 3, settings, 1e-6, rng, DType::f64);
  const Tensor x = randn({1, 12, kChannels}, rng, DType::f64), latent = randn({1, 12, 3}, rng, DType::f64);
  Tensor entries = indexer.keys(x, kTurns).value().clone();
  std::fill_n(entries.mutable_data<double>() + 2 * kSize, kSize, NAN);
  const Tensor seen = indexer(x, latent, entries, kTurns, 0);
  for (std::int64_t t = 0; t < 12; ++t) EXPECT_EQ(seen.at({0, t, 2}), t >= 5 ? 1 : 0) << t;  // from its end on
}

}  // namespace
}  // namespace braid::nn::compressor_test
