#include <braid/core/batch_invariant.h>

#include <gtest/gtest.h>
#include <tests/support.h>
#include <tests/target_guard.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include <braid/core/parallel.h>
#include <braid/core/products/matmul.h>
#include <braid/core/random.h>

namespace braid::batch_invariant_test {
namespace {

Tensor normal(const Shape& shape, std::uint64_t seed, DType dtype) {
  Rng rng(seed);
  return randn(shape, rng, dtype);
}

/// A matrix [m, n] that lies in memory as its transpose or with other rows between its own.
Tensor matrix(std::int64_t m, std::int64_t n, bool transposed, std::uint64_t seed, DType dtype) {
  return transposed ? normal({n, m}, seed, dtype).transpose() : normal({m, n + 3}, seed, dtype).slice(1, 0, n);
}

/// Rows [begin, end) of a times b, alone.
Tensor rows_alone(const Tensor& a, const Tensor& b, std::int64_t begin, std::int64_t end) {
  return matrix_product(a.slice(0, begin, end), b);
}

void expect_rows_alone_are_rows_together(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const Tensor a = matrix(m, k, transpose_a, 1, dtype), b = matrix(k, n, transpose_b, 2, dtype);
      const Tensor together = matrix_product(a, b);
      for (const std::int64_t count : {1, 2, 3, 5, 7, 8, 13})
        for (const std::int64_t begin : {std::int64_t{0}, m / 3, m - count}) {
          if (begin < 0 || begin + count > m) continue;
          ASSERT_TRUE(identical(rows_alone(a, b, begin, begin + count), together.slice(0, begin, begin + count)))
              << m << " x " << n << " x " << k << ", rows " << begin << " + " << count << ", transposed " << transpose_a
              << transpose_b;
        }
    }
}

class BatchInvariance : public ::testing::TestWithParam<DType> {};

TEST_P(BatchInvariance, RowsAloneAreRowsTogetherBitForBit) {
  const BatchInvariant scope;
  const WithThreads three(3);
  for (const std::int64_t m : {1, 5, 14, 97})
    for (const std::int64_t n : {1, 3, 31, 33, 200})
      for (const std::int64_t k : {0, 1, 7, 65, 383, 385, 1000})
        expect_rows_alone_are_rows_together(m, n, k, GetParam());
  expect_rows_alone_are_rows_together(301, 1030, 390, GetParam());
}

TEST_P(BatchInvariance, HoldsOnEverySimdTarget) {
  const BatchInvariant scope;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    expect_rows_alone_are_rows_together(15, 70, 401, GetParam());
  }
}

TEST_P(BatchInvariance, HoldsForBatchesOfMatricesAndForSums) {
  const BatchInvariant scope;
  const WithThreads three(3);
  const DType dtype = GetParam();
  const Tensor a = normal({6, 40, 70}, 1, dtype), b = normal({6, 70, 30}, 2, dtype), one = normal({70, 30}, 3, dtype);
  const Tensor batches = matrix_product(a, b), rows = matrix_product(a, one);
  Tensor sums = ones({6, 40, 30}, dtype), sum = ones({1, 1, 30}, dtype);
  accumulate_product(a, one, sums);
  const Tensor row = a.slice(0, 5, 6).slice(1, 39, 40);
  accumulate_product(row, one, sum);
  EXPECT_TRUE(identical(matrix_product(row, b.slice(0, 5, 6)), batches.slice(0, 5, 6).slice(1, 39, 40)));
  EXPECT_TRUE(identical(matrix_product(row, one), rows.slice(0, 5, 6).slice(1, 39, 40)));
  EXPECT_TRUE(identical(sum, sums.slice(0, 5, 6).slice(1, 39, 40)));
}

INSTANTIATE_TEST_SUITE_P(DTypes, BatchInvariance, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST(BatchInvariantScope, EndsWithItsBlockAndNests) {
  EXPECT_FALSE(BatchInvariant::active());
  {
    const BatchInvariant scope;
    { const BatchInvariant inner; }
    EXPECT_TRUE(BatchInvariant::active());
  }
  EXPECT_FALSE(BatchInvariant::active());
}

// Each block waits for the other, so that two threads have one each.
TEST(BatchInvariantScope, HoldsInTheBlocksOfAParallelFor) {
  const WithThreads two(2);
  for (const bool expected : {true, false, true}) {
    std::optional<BatchInvariant> scope;
    if (expected) scope.emplace();
    std::atomic<int> arrived = 0, active = 0;
    parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      active += BatchInvariant::active();
      for (++arrived; arrived < 2;) std::this_thread::yield();
    });
    EXPECT_EQ(active, expected ? 2 : 0);
  }
}

}  // namespace
}  // namespace braid::batch_invariant_test
