#include <braid/nn/sampling.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gmock/gmock.h>

#include <braid/core/error.h>
#include <tests/support.h>

namespace braid::nn::sampling_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor row(const std::vector<double>& values) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values);
}

/// How often each id is drawn, of 20,000 times.
std::map<std::int32_t, double> frequencies(const std::vector<double>& logits, const SamplingSettings& settings) {
  constexpr int kDraws = 20000;
  std::map<std::int32_t, double> found;
  Rng rng(1);
  for (int draw = 0; draw < kDraws; ++draw) found[sample(row(logits), settings, rng)] += 1.0 / kDraws;
  return found;
}

const std::vector<double> kProbabilities{0.1, 0.4, 0.2, 0.3};
const std::vector<double> kLogits = [] {
  std::vector<double> logits;
  for (const double p : kProbabilities) logits.push_back(std::log(p) + 5);
  return logits;
}();

void expect_near(const std::map<std::int32_t, double>& found, const std::map<std::int32_t, double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [id, p] : expected) EXPECT_NEAR(found.at(id), p, 4 * std::sqrt(p * (1 - p) / 20000) + 1e-9) << id;
}

TEST(Sampling, DrawsByTheProbabilities) {
  expect_near(frequencies(kLogits, {}), {{0, 0.1}, {1, 0.4}, {2, 0.2}, {3, 0.3}});
}

TEST(Sampling, DividesByTheTemperature) {
  double sum = 0;
  for (const double p : kProbabilities) sum += p * p;
  expect_near(frequencies(kLogits, {.temperature = 0.5}),
              {{0, 0.01 / sum}, {1, 0.16 / sum}, {2, 0.04 / sum}, {3, 0.09 / sum}});
}

TEST(Sampling, KeepsTheTopK) {
  expect_near(frequencies(kLogits, {.top_k = 2}), {{1, 4.0 / 7}, {3, 3.0 / 7}});
  expect_near(frequencies(kLogits, {.top_k = 1}), {{1, 1.0}});
  EXPECT_EQ(frequencies(kLogits, {.top_k = 4}), frequencies(kLogits, {}));
  EXPECT_EQ(frequencies(kLogits, {.top_k = 1000}), frequencies(kLogits, {}));
}

TEST(Sampling, KeepsTheLowestIdsOfEqualOnes) {
  expect_near(frequencies({1, 2, 2, 2}, {.top_k = 2}), {{1, 0.5}, {2, 0.5}});
  expect_near(frequencies({1, 1, 1, 1}, {.top_p = 0.4}), {{0, 0.5}, {1, 0.5}});
}

TEST(Sampling, KeepsTheFewestThatAddUpToTopP) {
  expect_near(frequencies(kLogits, {.top_p = 0.39}), {{1, 1.0}});
  expect_near(frequencies(kLogits, {.top_p = 0.41}), {{1, 4.0 / 7}, {3, 3.0 / 7}});
  expect_near(frequencies(kLogits, {.top_p = 0.85}), {{1, 4.0 / 9}, {3, 3.0 / 9}, {2, 2.0 / 9}});
  expect_near(frequencies({1, 1}, {.top_p = 0.5}), {{0, 1.0}});
  // Of the two that top_k leaves, the first has 0.57.
  expect_near(frequencies(kLogits, {.top_k = 2, .top_p = 0.5}), {{1, 1.0}});
  expect_near(frequencies(kLogits, {.top_k = 2, .top_p = 0.6}), {{1, 4.0 / 7}, {3, 3.0 / 7}});
}

TEST(Sampling, NeverDrawsWhatIsImpossible) {
  expect_near(frequencies({-kInfinity, 0, -kInfinity, 0, -kInfinity}, {}), {{1, 0.5}, {3, 0.5}});
  expect_near(frequencies({-kInfinity, 0, -kInfinity}, {.top_k = 2, .top_p = 0.999}), {{1, 1.0}});
  expect_near(frequencies({-1e300, 0, -1e300}, {.temperature = 1e-300}), {{1, 1.0}});
}

TEST(Sampling, DependsOnTheGeneratorAlone) {
  Rng first(7), second(7);
  const Tensor logits = row(std::vector<double>(50, 0.0));
  for (int draw = 0; draw < 20; ++draw) EXPECT_EQ(sample(logits, {}, first), sample(logits, {}, second));
  EXPECT_EQ(first.draws(), second.draws());
}

TEST(Sampling, MostLikelyIsTheFirstOfTheHighest) {
  EXPECT_EQ(most_likely(row({1, 3, 2, 3})), 1);
  EXPECT_EQ(most_likely(Tensor::of<float>({1, 2}, std::vector<float>{-5, -4})), 1);
  EXPECT_EQ(most_likely(row({-kInfinity, -7})), 1);
}

TEST(Sampling, RefusesWhatCannotBeDrawnFrom) {
  Rng rng(1);
  const auto message = [&](const Tensor& logits, const SamplingSettings& s = {}) {
    return message_of([&] { sample(logits, s, rng); });
  };
  EXPECT_EQ(message(row({0, std::nan("")})), "sample: logits must be finite or -inf but that of 1 is nan");
  EXPECT_EQ(message(row({kInfinity})), "sample: logits must be finite or -inf but that of 0 is inf");
  EXPECT_EQ(message(row({-kInfinity, -kInfinity})), "sample: no id is possible, as all logits are -inf");
  EXPECT_EQ(message(row({0, 0}).reshape({2, 1})),
            "sample: logits must have shape [vocab] or [1, vocab] but have [2, 1]");
  EXPECT_EQ(message(row({})), "sample: logits must have shape [vocab] or [1, vocab] but have [0]");
  EXPECT_EQ(message(row({0}), {.temperature = 0}), "sample: temperature must be > 0 but is 0");
  EXPECT_EQ(message(row({0}), {.top_k = -1}), "sample: top_k must be >= 0 but is -1");
  for (const double p : {0.0, 1.5, std::nan("")})
    EXPECT_THAT(message(row({0}), {.top_p = p}), testing::StartsWith("sample: top_p must be in (0, 1] but is "));
  EXPECT_EQ(rng.draws(), 0u);
}

}  // namespace
}  // namespace braid::nn::sampling_test
