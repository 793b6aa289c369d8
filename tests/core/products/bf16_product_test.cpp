// Products of bf16: against sums in f64, within the error of summing in f32 and of one rounding.
#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul.h>
#include <braid/core/random.h>
#include <tests/core/products/magnitudes.h>
#include <tests/support.h>
#include <tests/target_guard.h>

namespace braid::bf16_product_test {
namespace {

/// a [m, k] and b [k, n]; transposed ones are [k, m] and [n, k] in memory.
struct Operands {
  Tensor a, b;

  Operands(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
    Rng rng(static_cast<std::uint64_t>(m + 1000 * n + 1'000'000 * k));
    a = transpose_a ? randn({k, m}, rng).to(DType::bf16).transpose() : randn({m, k}, rng).to(DType::bf16);
    b = transpose_b ? randn({n, k}, rng).to(DType::bf16).transpose() : randn({k, n}, rng).to(DType::bf16);
  }
};

/// Expects c = a b + start.
void expect_product(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor& start = {}) {
  const std::vector<double> exact = matrix_product(a.to(DType::f64), b.to(DType::f64)).to_vector<double>(),
                            sums = matrix_product(magnitudes(a), magnitudes(b)).to_vector<double>();
  const std::vector<double> got = c.to_vector<double>(), first = start.defined() ? start.to_vector<double>() : exact;
  const double additions = static_cast<double>(a.size(-1) + 1) * 0x1p-23,
               rounding = c.dtype() == DType::bf16 ? 0x1p-8 : 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double added = start.defined() ? first[i] : 0, expected = exact[i] + added;
    ASSERT_NEAR(got[i], expected, rounding * std::abs(expected) + additions * (sums[i] + std::abs(added))) << i;
  }
}

TEST(BF16Product, IsSummedInF32AndRoundedOnce) {
  const WithThreads three(3);
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const std::int64_t m : {1, 3, 17, 130})
        for (const std::int64_t n : {1, 5, 33, 257})
          for (const std::int64_t k : {1, 2, 7, 64, 301, 1300}) {
            const auto [a, b] = Operands(m, n, k, transpose_a, transpose_b);
            SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " " << transpose_a << transpose_b);
            expect_product(matrix_product(a, b), a, b);
            expect_product(matrix_product(a, b, "matmul", DType::f32), a, b);
            const BatchInvariant widened;  // as on processors without bf16 products
            expect_product(matrix_product(a, b), a, b);
          }
}

TEST(BF16Product, OfFewRowsHasTheBitsOfItsOperandsWidenedOnEverySimdTarget) {
  const BatchInvariant widened;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    for (const std::int64_t m : {1, 2, 3, 6, 8, 9})
      for (const std::int64_t n : {1, 9, 64, 85})
        for (const std::int64_t k : {1, 7, 8, 21, 400})
          for (const int transposed : {0, 1, 2, 3}) {
            const auto [a, b] = Operands(m, n, k, transposed / 2 == 1, transposed % 2 == 1);
            SCOPED_TRACE(testing::Message()
                         << hwy::TargetName(target) << m << "x" << n << "x" << k << " " << transposed);
            const Tensor x = a.to(DType::f32), y = b.to(DType::f32), row = y.slice(0, 0, 1).reshape({n});
            ASSERT_TRUE(identical(matrix_product(a, b, "matmul", DType::f32), matrix_product(x, y)));
            ASSERT_TRUE(identical(product_plus_row(a, b, row), product_plus_row(x, y, row).to(DType::bf16)));
          }
  }
}

TEST(BF16Product, AddsToC) {
  for (const std::int64_t k : {50, 1300}) {
    const auto [a, b] = Operands(70, 90, k, false, true);
    Rng rng(3);
    const Tensor start = randn({70, 90}, rng).to(DType::bf16);
    Tensor c = start.clone();
    accumulate_product(a, b, c);
    expect_product(c, a, b, start);
  }
}

TEST(BF16Product, AddsARowToEachRow) {
  const auto [left, right] = Operands(70, 50, 1300, false, true);
  const Tensor one = ones({50});
  expect_product(product_plus_row(left, right, one), left, right, one.broadcast_to({70, 50}));
  const auto [a, b] = Operands(130, 170, 90, false, true);
  Rng rng(3);
  const Tensor row = randn({170}, rng);
  expect_product(product_plus_row(a, b, row), a, b, row.broadcast_to({130, 170}));
  const Tensor wide_a = a.to(DType::f32), wide_b = b.to(DType::f32), c = product_plus_row(wide_a, wide_b, row);
  expect_product(c, wide_a, wide_b, row.broadcast_to({130, 170}));
  EXPECT_EQ(message_of([&] { product_plus_row(a, b, row.to(DType::bf16)); }),
            "matmul: the row must have dtype f32 but has bf16");
  EXPECT_EQ(message_of([&] { product_plus_row(a, b, ones({130})); }),
            "matmul: a row for the product [130, 170] must have shape [170] but has [130]");
  EXPECT_EQ(message_of([&] { product_plus_row(a.expand_dims(0), b, ones({130})); }),
            "matmul: a row for the product [1, 130, 170] must have shape [170] but has [130]");
  EXPECT_EQ(product_plus_row(zeros({2, 0}), zeros({0, 3}), ones({3})).at({1, 2}), 1);
}

TEST(BF16Product, HasTheSameBitsForAnyNumberOfThreads) {
  for (const bool transposed : {false, true}) {
    const auto [a, b] = Operands(700, 300, 390, transposed, !transposed);
    std::optional<Tensor> expected;
    for (const int threads : {1, 2, 3, 8}) {
      const WithThreads some(threads);
      const Tensor c = matrix_product(a, b);
      EXPECT_TRUE(identical(c, expected.value_or(c))) << threads << " threads";
      expected = c;
    }
  }
}

TEST(BF16Product, HasTheSameBitsInABatch) {
  Rng rng(3);
  const Tensor a = randn({5, 40, 1300}, rng).to(DType::bf16), b = randn({5, 50, 1300}, rng).to(DType::bf16);
  for (const int threads : {1, 2, 3}) {
    const WithThreads some(threads);
    const Tensor c = matrix_product(a, b.transpose());
    for (std::int64_t i = 0; i < 5; ++i)
      EXPECT_TRUE(identical(c[i].contiguous(), matrix_product(a[i], b[i].transpose()))) << i << ", " << threads;
  }
}

TEST(BF16Product, PropagatesNanAndInfinity) {
  Tensor a = ones({3, 40}, DType::bf16), b = ones({40, 3}, DType::bf16);
  b.mutable_data<bfloat16>()[0] = bfloat16(std::numeric_limits<float>::quiet_NaN());
  b.mutable_data<bfloat16>()[1] = bfloat16(std::numeric_limits<float>::infinity());
  const Tensor c = matrix_product(a, b);
  EXPECT_TRUE(std::isnan(c.at({0, 0})));
  EXPECT_TRUE(std::isinf(c.at({1, 1})));
  EXPECT_EQ(c.at({2, 2}), 40);
}

TEST(BF16Product, AcceptsSizesOfZero) {
  EXPECT_EQ(matrix_product(zeros({2, 0}, DType::bf16), zeros({0, 3}, DType::bf16)).at({1, 2}), 0);
  EXPECT_EQ(matrix_product(zeros({0, 4}, DType::bf16), zeros({4, 3}, DType::bf16)).shape(), Shape({0, 3}));
}

TEST(BF16Product, RejectsOtherTypes) {
  const Tensor a = ones({2, 2}, DType::bf16), b = ones({2, 2});
  EXPECT_EQ(message_of([&] { matrix_product(a, b); }), "matmul: inputs must have the same dtype but have bf16 and f32");
  EXPECT_EQ(message_of([&] { matrix_product(a, a, "linear", DType::f64); }),
            "linear: inputs must have the same dtype but have bf16 and f64");
  EXPECT_EQ(message_of([&] { matrix_product(b, b, "linear", DType::bf16); }),
            "linear: inputs must have the same dtype but have f32 and bf16");
}

}  // namespace
}  // namespace braid::bf16_product_test
