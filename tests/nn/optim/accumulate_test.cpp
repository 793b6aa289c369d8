#include <braid/nn/optim/accumulate.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include <gmock/gmock.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/core/random.h>
#include <braid/core/storage.h>
#include <braid/nn/saving.h>
#include <braid/nn/transformer.h>
#include <tests/support.h>

namespace braid::nn::accumulate_test {
namespace {

using testing::ElementsAre;

/// The expression that a sum is: `((0+1)+2)`. Its addition commutes, as that of numbers does.
struct Expression {
  std::string text;
};
void add_to(Expression& sum, const Expression& term) {
  const bool first = std::stoll(sum.text.substr(sum.text.find_first_not_of('('))) <
                     std::stoll(term.text.substr(term.text.find_first_not_of('(')));
  sum.text = first ? "(" + sum.text + "+" + term.text + ")" : "(" + term.text + "+" + sum.text + ")";
}

std::string sum_of(const std::vector<std::int64_t>& order) {
  TreeSum<Expression> sum(static_cast<std::int64_t>(order.size()));
  for (const std::int64_t block : order) sum.add(block, Expression{std::to_string(block)});
  return std::move(sum).total().text;
}

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(TreeSum, AddsAlongOneTree) {
  EXPECT_EQ(sum_of(first(1)), "0");
  EXPECT_EQ(sum_of(first(2)), "(0+1)");
  EXPECT_EQ(sum_of(first(3)), "((0+1)+2)");
  EXPECT_EQ(sum_of(first(4)), "((0+1)+(2+3))");
  EXPECT_EQ(sum_of(first(6)), "(((0+1)+(2+3))+(4+5))");
  EXPECT_EQ(sum_of(first(7)), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_EQ(sum_of(first(8)), "(((0+1)+(2+3))+((4+5)+(6+7)))");
}

TEST(TreeSum, DoesNotDependOnTheOrderOfTheBlocks) {
  std::mt19937 random(1);
  for (std::int64_t blocks = 1; blocks <= 17; ++blocks) {
    std::vector<std::int64_t> order = first(blocks);
    const std::string expected = sum_of(order);
    for (int i = 0; i < 20; ++i) {
      std::ranges::shuffle(order, random);
      EXPECT_EQ(sum_of(order), expected);
    }
  }
}

TEST(TreeSum, DoesNotDependOnWhoAddsWhichRange) {
  for (std::int64_t blocks = 1; blocks <= 16; ++blocks) {
    const std::string expected = sum_of(first(blocks));
    for (std::int64_t ranks = 1; ranks <= blocks; ++ranks) {
      TreeSum<Expression> whole(blocks);
      for (std::int64_t rank = ranks; rank-- > 0;) {  // the last one first
        TreeSum<Expression> mine(blocks);
        for (std::int64_t b = rank * blocks / ranks; b < (rank + 1) * blocks / ranks; ++b)
          mine.add(b, Expression{std::to_string(b)});
        auto parts = std::move(mine).parts();
        EXPECT_LE(parts.size(), 2 * std::log2(blocks) + 1);
        for (auto& [range, value] : parts) whole.add(range, std::move(value));
      }
      EXPECT_EQ(std::move(whole).total().text, expected) << blocks << " blocks, " << ranks << " ranks";
    }
  }
}

TEST(TreeSum, HandsOnTheLargestNodes) {
  TreeSum<double> sum(8);
  for (std::int64_t block = 1; block < 8; ++block) sum.add(block, 1);
  std::vector<std::int64_t> begins;
  std::vector<double> values;
  for (const auto& [range, value] : std::move(sum).parts()) {
    begins.push_back(range.begin);
    values.push_back(value);
  }
  EXPECT_THAT(begins, ElementsAre(1, 2, 4));
  EXPECT_THAT(values, ElementsAre(1, 2, 4));
}

TEST(TreeSum, RejectsWhatIsNoNodeOrNotNew) {
  const auto added = [](std::int64_t blocks, std::vector<BlockRange> ranges) {
    return message_of([&] {
      TreeSum<double> sum(blocks);
      for (const BlockRange& range : ranges) sum.add(range, 1);
    });
  };
  EXPECT_EQ(added(0, {}), "TreeSum: blocks must be at least 1 but is 0");
  for (const BlockRange range : {BlockRange{1, 3}, {0, 3}, {-1, 0}, {6, 7}, {5, 5}, {3, 2}, {0, 8}})
    EXPECT_EQ(added(6, {range}),
              fmt::format("TreeSum: [{}, {}) is no node of the tree over 6 blocks", range.begin, range.end));
  EXPECT_EQ(added(6, {{0, 4}, {4, 6}, {2, 3}}), "TreeSum: blocks [2, 3) must be new but some of them were added");
  EXPECT_EQ(added(8, {{2, 3}, {0, 4}}), "TreeSum: blocks [0, 4) must be new but some of them were added");
  EXPECT_EQ(added(6, {{4, 5}, {4, 6}}), "TreeSum: blocks [4, 6) must be new but some of them were added");
  EXPECT_EQ(added(8, {{5, 6}, {4, 5}, {0, 4}, {6, 7}}), "nothing was thrown");
  EXPECT_EQ(message_of([] {
              TreeSum<double> sum(2);
              sum.add(1, 3);
              std::move(sum).total();
            }),
            "TreeSum: the sum over 2 blocks is not complete");
}

TEST(AddInPlace, AddsInPlaceUnlessTheStorageIsShared) {
  Rng rng(1);
  constexpr std::int64_t kSize = 40001;  // several blocks and a rest
  const Tensor a = randn({kSize}, rng), b = randn({kSize, 2}, rng).select(1, 1);
  std::vector<Var> sum{a, a.clone()};
  const std::byte* const second = sum[1].value().bytes();
  nn::add_to(sum, std::vector<Var>{b, b});
  EXPECT_EQ(sum[1].value().bytes(), second);
  for (const Var& s : sum)
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{16384}, kSize - 1})
      EXPECT_EQ(s.value().at({i}), static_cast<float>(a.at({i})) + static_cast<float>(b.at({i})));
  EXPECT_NE(a.bytes(), sum[0].value().bytes());
}

TEST(AddInPlace, RejectsOtherShapes) {
  std::vector<Var> sum{zeros({2})};
  EXPECT_EQ(message_of([&] { nn::add_to(sum, std::vector<Var>{zeros({3})}); }),
            "add_in_place: term 0 must have the shape [2] of its sum but has [3]");
  EXPECT_EQ(message_of([&] { nn::add_to(sum, std::vector<Var>{}); }),
            "add_in_place: 1 sums need the same number of terms but there are 0");
}

/// A small language model and a batch.
struct Accumulation : testing::Test {
  auto blockwise(std::int64_t blocks, const Tensor& tokens, const Tensor& targets) const {
    return accumulate(blocks, [&](std::int64_t block) {
      const std::int64_t size = tokens.size(0) / blocks;
      const auto part = [&](const Tensor& t) { return t.slice(0, block * size, (block + 1) * size); };
      return value_and_grad([&](const Transformer<>& m) { return m.loss(part(tokens), part(targets)); })(model);
    });
  }
  static void expect_same(const std::pair<double, Transformer<>>& a, const std::pair<double, Transformer<>>& b) {
    EXPECT_EQ(a.first, b.first);
    const NamedTensors grads = to_tensors(b.second);
    for (const auto& [name, grad] : to_tensors(a.second)) EXPECT_TRUE(identical(grad, grads.at(name))) << name;
  }

  Rng rng{3};
  Transformer<> model{{.vocab = 7, .context = 5, .channels = 12, .layers = 2, .heads = 3}, rng};
  Tensor tokens = randint(0, 7, {12, 5}, rng), targets = randint(0, 7, {12, 5}, rng);
};

TEST_F(Accumulation, OfOneBlockIsThatBlock) {
  expect_same(blockwise(1, tokens, targets),
              value_and_grad([&](const Transformer<>& m) { return m.loss(tokens, targets); })(model));
}

TEST_F(Accumulation, OfBlocksOfEqualContentsIsThatOfOne) {
  const Tensor one = tokens.slice(0, 0, 3), its = targets.slice(0, 0, 3);
  const auto repeated = [](const Tensor& t, std::int64_t times) {
    return t.expand_dims(0)
        .broadcast_to(Shape{times}.concat(t.shape()))
        .clone()
        .reshape({times * t.size(0), t.size(1)});
  };
  for (const std::int64_t blocks : {2, 4, 8, 16})
    expect_same(blockwise(blocks, repeated(one, blocks), repeated(its, blocks)), blockwise(1, one, its));
}

TEST_F(Accumulation, OfBlocksOfEqualSizeIsTheMeanOverTheBatch) {
  for_each_param(model, [](const std::string&, Var& p) { p = p.value().to(DType::f64); });
  const auto [loss, grads] = blockwise(1, tokens, targets);
  const NamedTensors expected = to_tensors(grads);
  for (const std::int64_t blocks : {2, 3, 4, 6, 12}) {
    const auto [mean, accumulated] = blockwise(blocks, tokens, targets);
    EXPECT_NEAR(mean, loss, 1e-14);
    for (const auto& [name, grad] : to_tensors(accumulated)) {
      const std::vector<double> a = grad.to_vector<double>(), b = expected.at(name).to_vector<double>();
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-14) << name;
    }
  }
}

TEST_F(Accumulation, DoesNotDependOnThreads) {
  const WithThreads one(1);
  const auto expected = blockwise(6, tokens, targets);
  const WithThreads three(3);
  expect_same(blockwise(6, tokens, targets), expected);
}

TEST(Accumulate, HoldsALogarithmOfGradients) {
  constexpr std::int64_t kSize = 1 << 18, kBytes = kSize * 4;
  const auto peak = [&](std::int64_t blocks) {
    const std::int64_t before = memory_stats().live_bytes;
    reset_peak_memory();
    accumulate(blocks, [](std::int64_t) { return std::pair<double, Var>(1, ones({kSize})); });
    return static_cast<double>(memory_stats().peak_bytes - before) / kBytes;
  };
  EXPECT_LE(peak(1), 1.01);
  EXPECT_LE(peak(8), 4.01);
  EXPECT_LE(peak(64), 7.01);
}

}  // namespace
}  // namespace braid::nn::accumulate_test
