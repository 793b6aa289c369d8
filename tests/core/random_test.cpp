#include <braid/core/random.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include <tests/support.h>
#include <tests/target_guard.h>

namespace braid::random_test {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// The k-th moment about `center`.
double moment(const Tensor& t, int k, double center = 0) {
  double sum = 0;
  for (const double v : t.to_vector<double>()) sum += std::pow(v - center, k);
  return sum / static_cast<double>(t.numel());
}

double correlation(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum / static_cast<double>(x.size());
}

TEST(Random, GivesThePublishedNumbersOfPhilox4x32) {
  // Random123's kat_vectors for 10 rounds: counter and key all 0, and all 1.
  EXPECT_EQ(Rng(0, 0).bits(), 0x6627e8d5e169c58d);
  EXPECT_EQ(Rng(kAll, kAll).split().key(), 0x408f276d41c83b0e);
  // Words 3 and 4 of the first vector are the angle of a normal number.
  Rng rng(0, 0);
  const double radius = std::sqrt(-2 * std::log1p(-unit(0x6627e8d5e169c58d)));
  EXPECT_EQ(randn({1}, rng, DType::f64).item(), radius * std::cos(2 * std::numbers::pi * unit(0xbc57ac4c9b00dbd8)));
}

TEST(Random, NumbersOfF32AreThoseOfF64CutOffOnEverySimdTarget) {
  const Rng rng(0x123456789abcdef0, 0xfedcba9876543210);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{77}, (std::int64_t{1} << 32) - 19})
      for (const std::int64_t n : {0, 1, 7, 16, 41}) {
        std::vector<float> got(static_cast<std::size_t>(n) + 1, 7);
        std::vector<double> exact(static_cast<std::size_t>(n));
        rand_elements(rng, first, n, got.data());
        rand_elements(rng, first, n, exact.data());
        for (std::size_t i = 0; i < exact.size(); ++i)
          ASSERT_EQ(got[i], std::floor(exact[i] * 0x1p24) * 0x1p-24)
              << hwy::TargetName(target) << " " << first << " " << i;
        ASSERT_EQ(got.back(), 7) << "written past the end";
      }
  }
}

TEST(Random, ACopyRepeatsTheSameNumbers) {
  Rng rng(5);
  Rng copy = rng;
  EXPECT_TRUE(identical(randn({7}, rng), randn({7}, copy)));
  EXPECT_EQ(rng.bits(), copy.bits());
  EXPECT_FALSE(identical(randn({7}, rng), randn({7}, rng)));
}

TEST(Random, ContinuesFromItsStoredState) {
  Rng rng(5);
  rng.bits();
  rand({3}, rng);
  rng.split();
  Rng continued(rng.key(), rng.draws());
  EXPECT_EQ(rng.draws(), 3U);
  EXPECT_EQ(continued.bits(), rng.bits());
}

TEST(Random, AnElementDependsOnItsPlaceOnly) {
  Rng a(5), b(5);
  EXPECT_TRUE(identical(randn({1000}, a).slice(0, 0, 10), randn({10}, b)));
}

TEST(Random, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto draw = [] {
    Rng rng(3);
    return randn({3, 5001}, rng);
  };
  const WithThreads one(1);
  const Tensor expected = draw();
  for (const int threads : {2, 3}) {
    const WithThreads with_threads(threads);
    EXPECT_TRUE(identical(draw(), expected));
  }
}

TEST(Random, SplitsAreIndependentOfEachOtherAndOfTheirParent) {
  Rng parent(9);
  Rng first = parent.split(), second = parent.split();
  const std::int64_t n = 100'000;
  const Tensor a = randn({n}, first, DType::f64), b = randn({n}, second, DType::f64),
               c = randn({n}, parent, DType::f64);
  EXPECT_LT(std::abs(correlation(a, b)), 0.015);  // 4.7 standard deviations
  EXPECT_LT(std::abs(correlation(a, c)), 0.015);
  EXPECT_LT(std::abs(correlation(b, c)), 0.015);
  EXPECT_LT(std::abs(correlation(a.slice(0, 0, n - 1), a.slice(0, 1, n))), 0.015);
}

TEST(Random, NeighbouringSeedsShareNothing) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    seen.insert({rng.bits(), rng.bits(), rng.split().key()});
  }
  EXPECT_EQ(seen.size(), 3000U);
}

TEST(Random, UniformHasTheRightMomentsAndRange) {
  Rng rng(1);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor t = rand({1000, 400}, rng, dtype);
    EXPECT_NEAR(moment(t, 1), 0.5, 0.002);
    EXPECT_NEAR(moment(t, 2, 0.5), 1.0 / 12, 0.001);
    const std::vector<double> values = t.to_vector<double>();
    EXPECT_GE(std::ranges::min(values), 0);
    EXPECT_LT(std::ranges::max(values), 1);
  }
}

TEST(Random, NormalHasTheRightMoments) {
  Rng rng(2);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor t = randn({1000, 400}, rng, dtype);
    EXPECT_NEAR(moment(t, 1), 0, 0.008);
    EXPECT_NEAR(moment(t, 2), 1, 0.012);
    EXPECT_NEAR(moment(t, 3), 0, 0.03);
    EXPECT_NEAR(moment(t, 4), 3, 0.1);
  }
}

TEST(Random, IntegersCoverTheirRangeEvenly) {
  Rng rng(3);
  std::vector<int> counts(5);
  const Tensor t = randint(-2, 3, {50'000}, rng);
  for (const std::int32_t v : t.to_vector<std::int32_t>()) ++counts.at(static_cast<std::size_t>(v + 2));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 450);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t v = rng.below(3);
    EXPECT_TRUE(0 <= v && v < 3);
  }
}

TEST(Random, TensorsMayBeEmpty) {
  Rng rng(4);
  EXPECT_EQ(randn({0, 3}, rng).numel(), 0);
  EXPECT_EQ(rng.draws(), 1U);
}

TEST(Random, RejectsEmptyRangesAndIntegerTensors) {
  Rng rng(4);
  EXPECT_EQ(message_of([&] { rng.below(0); }), "Rng::below: n must be positive but is 0");
  EXPECT_EQ(message_of([&] { randint(3, 3, {1}, rng); }), "randint: low 3 must be below high 3");
  EXPECT_EQ(message_of([&] { randint(5, 3, {1}, rng); }), "randint: low 5 must be below high 3");
  EXPECT_EQ(message_of([&] { randint(0, 2147483649, {1}, rng); }),
            "randint: [0, 2147483649) must lie in the range of i32");
  EXPECT_EQ(message_of([&] { randint(0, std::int64_t{1} << 32, {1}, rng); }),
            "randint: [0, 4294967296) must lie in the range of i32");
  EXPECT_EQ(message_of([&] { randint(-2147483649, 0, {1}, rng); }),
            "randint: [-2147483649, 0) must lie in the range of i32");
  EXPECT_EQ(message_of([&] { rand({1}, rng, DType::i32); }),
            "rand: expected a floating-point tensor but has dtype i32");
}

TEST(Random, PermutationsHoldEachNumberOnce) {
  Rng rng(5);
  const Tensor order = randperm(1000, rng);
  EXPECT_EQ(order.dtype(), DType::i32);
  std::vector<int> numbers = order.to_vector<int>(), all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_NE(numbers, all);
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, all);
  EXPECT_EQ(rng.draws(), 1U);
  EXPECT_FALSE(identical(order, randperm(1000, rng)));
  EXPECT_EQ(randperm(0, rng).shape(), Shape{0});
}

TEST(Random, PermutationsAreEquallyLikely) {
  Rng rng(6);
  std::map<std::vector<int>, int> counts;
  for (int i = 0; i < 12'000; ++i) ++counts[randperm(4, rng).to_vector<int>()];
  EXPECT_EQ(counts.size(), 24U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 500, 110);  // 5 standard deviations
}

TEST(Random, PermutationsRejectNegativeSizes) {
  Rng rng;
  EXPECT_EQ(message_of([&] { randperm(-1, rng); }), "randperm: n must lie in [0, 2^31] but is -1");
}

}  // namespace
}  // namespace braid::random_test
