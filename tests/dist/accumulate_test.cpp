#include <braid/dist/accumulate.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/random.h>
#include <braid/nn/optim/accumulate.h>
#include <braid/nn/transformer.h>

#include <tests/dist/ranks.h>
#include <tests/support.h>

namespace braid::dist {
namespace {

/// Parameters of odd sizes: larger than a bucket, small, of none, in another dtype and unused, of one element.
struct Odd {
  Var large, bias, none, unused, one;

  explicit Odd(Rng& rng, DType dtype)
      : large(randn({301, 333}, rng, dtype)),
        bias(randn({333}, rng, dtype)),
        none(zeros({0, 3}, dtype)),
        unused(ones({17}, DType::f64)),
        one(full({}, 0.7, dtype)) {}

  void params(auto&& visit) {
    visit("large", large);
    visit("bias", bias);
    visit("none", none);
    visit("unused", unused);
    visit("one", one);
  }
};

Var loss_of(const Odd& m, const Tensor& x) { return mean(tanh(matmul(x, m.large) + m.bias) * m.one) + sum(m.none); }

/// On every rank: compares the loss and gradients over the ranks with those of nn::accumulate in one process.
template <Parametric M, class Loss>
void expect_the_bits_of_one_rank(const M& model, std::int64_t blocks, Loss loss) {
  auto [expected_loss, expected] = nn::accumulate(
      blocks, [&](std::int64_t block) { return value_and_grad([&](const M& m) { return loss(m, block); })(model); });
  auto [actual_loss, actual] = accumulate(ranks(), blocks, model, loss);
  EXPECT_EQ(actual_loss, expected_loss) << blocks << " blocks";
  const std::vector<NamedParam> theirs = named_params(expected);
  std::size_t i = 0;
  for_each_param(actual, [&](const std::string& name, const Var& grad) {
    EXPECT_TRUE(identical(grad.value(), theirs[i++].param->value())) << name << ", " << blocks << " blocks";
  });
}

TEST(Accumulate, HasTheBitsOfOneRank) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Rng rng(5);
    const Odd model(rng, dtype);
    for (std::int64_t blocks = ranks().size(); blocks <= ranks().size() + 9; ++blocks) {
      const Tensor x = randn({blocks, 5, 301}, rng, dtype);
      expect_the_bits_of_one_rank(model, blocks,
                                  [&](const Odd& m, std::int64_t block) { return loss_of(m, x.select(0, block)); });
    }
  }
}

TEST(Accumulate, SumsGradientsThatShareTheirStorage) {
  Rng rng(10);
  const std::vector<Var> large{randn({300, 301}, rng), randn({300, 301}, rng)};
  const Tensor x = randn({9, 300, 301}, rng);
  expect_the_bits_of_one_rank(
      large, 9, [&](const auto& m, std::int64_t block) { return mean((m[0] + m[1]) * Var(x.select(0, block))); });
}

TEST(Accumulate, HasTheSameBitsOnAnyNumberOfThreads) {
  Rng rng(6);
  const Odd model(rng, DType::f32);
  const Tensor x = randn({8, 5, 301}, rng);
  const auto loss = [&](const Odd& m, std::int64_t block) { return loss_of(m, x.select(0, block)); };
  std::pair<double, Odd> first = accumulate(ranks(), 8, model, loss);
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads + ranks().rank() % 2);
    std::pair<double, Odd> again = accumulate(ranks(), 8, model, loss);
    EXPECT_EQ(again.first, first.first);
    EXPECT_TRUE(identical(again.second.large.value(), first.second.large.value()));
  }
}

TEST(Accumulate, TrainsATransformer) {
  Rng rng(7);
  const nn::TransformerConfig sizes{.vocab = 11, .context = 7, .channels = 24, .layers = 2, .heads = 2};
  const nn::Transformer<nn::Residual> model(sizes, rng);
  const std::int64_t blocks = 13;
  const Tensor tokens = randint(0, 11, {blocks, 2, 7}, rng), targets = randint(0, 11, {blocks, 2, 7}, rng);
  expect_the_bits_of_one_rank(model, blocks, [&](const auto& m, std::int64_t block) {
    return m.loss(tokens.select(0, block), targets.select(0, block));
  });
}

TEST(Accumulate, MeasuresItsMessages) {
  Rng rng(8);
  const Odd model(rng, DType::f32);
  const int others = ranks().size() - 1;
  const double bytes = 4 * (301 * 333 + 333 + 1) + 8 * (17 + 1);  // with the loss
  for (int i = 0; i < 20; ++i) {
    const Traffic before = ranks().traffic();
    const auto start = std::chrono::steady_clock::now();
    accumulate(ranks(), 8, model, [&](const Odd& m, std::int64_t) { return loss_of(m, ones({5, 301})); });
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const Traffic after = ranks().traffic();
    EXPECT_GT(after.seconds_open, before.seconds_open);
    EXPECT_GE(after.seconds_beside, before.seconds_beside);
    EXPECT_GE(after.seconds_after, before.seconds_after);
    const double seconds = after.seconds_beside - before.seconds_beside + after.seconds_after - before.seconds_after;
    EXPECT_LE(std::max(seconds, after.seconds_open - before.seconds_open), passed.count() + 1e-6);
    double sent = 0;
    for (const std::string& of_rank : ranks().gather(fmt::format("{}", after.bytes_sent - before.bytes_sent)))
      sent += std::stod(of_rank);
    EXPECT_GE(sent, 2 * others * bytes);  // each part up and down the tree, which 2^k ranks do without detours
    if (std::has_single_bit(static_cast<unsigned>(ranks().size()))) {
      EXPECT_EQ(sent, 2 * others * bytes);
    }
  }
}

TEST(Accumulate, RejectsMoreRanksThanBlocksAndLossesThatAreNotScalars) {
  Rng rng(9);
  const Odd model(rng, DType::f32);
  const std::int64_t too_few = ranks().size() - 1;
  EXPECT_EQ(message_of([&] { accumulate(ranks(), too_few, model, [](const Odd& m, std::int64_t) { return m.one; }); }),
            fmt::format("dist: {} blocks are too few for {} ranks", too_few, ranks().size()));
  EXPECT_EQ(message_of([&] { accumulate(ranks(), 8, model, [](const Odd& m, std::int64_t) { return m.bias; }); }),
            "accumulate: the loss must be a scalar but has shape [333]");
}

}  // namespace
}  // namespace braid::dist
