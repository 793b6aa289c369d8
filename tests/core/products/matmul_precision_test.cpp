// Products of f32 by bf16 terms: against sums in f64, within the error of the terms left out and of summing in f32.
#include <braid/core/products/matmul_precision.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul.h>
#include <braid/core/random.h>
#include <tests/core/products/magnitudes.h>
#include <tests/support.h>

namespace braid::matmul_precision_test {
namespace {

/// a [m, k] b [k, n] + beta start of f32; transposed operands are [k, m] and [n, k] in memory.
struct Case {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  float beta = 0;
  Tensor a, b, start;

  Case(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float beta = 0)
      : transpose_a(transpose_a), transpose_b(transpose_b), m(m), n(n), k(k), beta(beta) {
    Rng rng(static_cast<std::uint64_t>(m + 1000 * n + 1'000'000 * k));
    a = randn(transpose_a ? Shape{k, m} : Shape{m, k}, rng);
    b = randn(transpose_b ? Shape{n, k} : Shape{k, n}, rng);
    start = randn({m, n}, rng);
  }

  Tensor left() const { return transpose_a ? a.transpose() : a; }
  Tensor right() const { return transpose_b ? b.transpose() : b; }

  /// The product of operands that are split into bf16 terms, or not for 0.
  Tensor by_terms(int terms, const Tensor& row = {}) const {
    Tensor c = start.clone();
    gemm<float>({.m = m,
                 .n = n,
                 .k = k,
                 .a = {a.data<float>(), a.size(1), transpose_a},
                 .b = {b.data<float>(), b.size(1), transpose_b},
                 .c = {c.mutable_data<float>(), n},
                 .beta = beta,
                 .row = row.defined() ? row.data<float>() : nullptr,
                 .bf16_terms = terms});
    return c;
  }
};

/// The numbers of terms that this processor supports.
std::vector<int> all_terms() {
  return bf16_products() == std::string_view("AMX") ? std::vector{1, 2, 3} : std::vector{1};
}

/// Bound of the error as a share of |a| |b|. A term is rounded to 8 bits from what those before leave, so that two
/// leave 2^-16 and three nothing; among the products of terms, one of 2^-16 or two of 2^-24 are left out.
double left_out(int terms) { return terms == 1 ? 0x1p-7 + 0x1p-16 : terms == 2 ? 3 * 0x1p-16 : 2 * 0x1p-24 + 0x1p-32; }

void expect_product(const Tensor& c, const Case& p, int terms, const Tensor& row = {}) {
  const std::vector<double> exact =
                                matrix_product(p.left().to(DType::f64), p.right().to(DType::f64)).to_vector<double>(),
                            sums = matrix_product(magnitudes(p.left()), magnitudes(p.right())).to_vector<double>(),
                            start = p.start.to_vector<double>(), got = c.to_vector<double>(),
                            rows = (row.defined() ? row : zeros({p.n})).to_vector<double>();
  const double additions = static_cast<double>((p.k + 1) * terms * (terms + 1) / 2) * 0x1p-24;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double added = p.beta * start[i] + rows[i % rows.size()];
    ASSERT_NEAR(got[i], exact[i] + added, (left_out(terms) + additions) * (sums[i] + std::abs(added))) << i;
  }
}

TEST(BF16Terms, StayWithinTheErrorOfTheTermsLeftOut) {
  const WithThreads three(3);
  for (const int terms : all_terms())
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {3, 5, 7}, {17, 257, 64}, {130, 33, 301}}) {
          const Case p(transpose_a, transpose_b, m, n, k);
          SCOPED_TRACE(testing::Message()
                       << terms << " terms " << m << "x" << n << "x" << k << " " << transpose_a << transpose_b);
          expect_product(p.by_terms(terms), p, terms);
        }
}

TEST(BF16Terms, OfOneAreTheRoundedOperandsOnEveryProcessor) {
  const Case p(false, true, 65, 70, 90, 0.5F);
  Case rounded = p;
  for (Tensor* factor : {&rounded.a, &rounded.b}) *factor = factor->to(DType::bf16).to(DType::f32);
  expect_product(p.by_terms(1), rounded, 3);  // with no more than the errors of sums
  if (bf16_products() == std::string_view("AMX")) return;
  for (const int terms : {2, 3}) EXPECT_TRUE(identical(p.by_terms(terms), p.by_terms(0))) << terms;
}

TEST(BF16Terms, AddToCAndARow) {
  Rng rng(5);
  const Tensor row = randn({90}, rng);
  for (const int terms : all_terms())
    for (const std::int64_t k : {50, 1600}) {
      const Case p(false, true, 70, 90, k, 0.5F), plain(false, true, 70, 90, k);
      expect_product(p.by_terms(terms), p, terms);
      expect_product(plain.by_terms(terms, row), plain, terms, row);
    }
}

/// The root of the mean square of the errors against f64.
double error(const Tensor& c, const Case& p) {
  const std::vector<double> got = c.to_vector<double>(),
                            exact =
                                matrix_product(p.left().to(DType::f64), p.right().to(DType::f64)).to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < got.size(); ++i) sum += (got[i] - exact[i]) * (got[i] - exact[i]);
  return std::sqrt(sum / static_cast<double>(got.size()));
}

TEST(BF16Terms, ThreeAreAsExactAsF32) {
  if (bf16_products() != std::string_view("AMX")) GTEST_SKIP() << "needs AMX";
  for (const std::int64_t k : {64, 384, 1536, 3072})
    for (const bool one_sign : {false, true}) {
      Case p(false, true, 200, 150, k);
      for (Tensor* factor : {&p.a, &p.b})
        if (one_sign) *factor = magnitudes(*factor).to(DType::f32);
      EXPECT_LE(error(p.by_terms(3), p), error(p.by_terms(0), p)) << k << ", " << one_sign;
    }
}

TEST(BF16Terms, AreNotUsedForOperandsThatAreNotFiniteAsBF16) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::max()})
    for (const int terms : all_terms())
      for (const bool left : {true, false})
        for (const float beta : {0.0F, 0.5F}) {
          Case p(false, false, 40, 50, 1600, beta);
          Tensor& factor = left ? p.a : p.b;
          factor.mutable_data<float>()[factor.numel() - 34] = value;
          EXPECT_TRUE(identical(p.by_terms(terms), p.by_terms(0))) << value;
        }
}

TEST(BF16Terms, ThreeHoldAllBitsOfNormalNumbers) {
  if (bf16_products() != std::string_view("AMX")) GTEST_SKIP() << "needs AMX";
  for (const float value : {1 + 0x1p-23F, 16777215.0F, -0x1.fffffep-100F, 0x1.fep127F}) {
    Case p(false, false, 1, 1, 1);
    p.a.mutable_data<float>()[0] = value;
    p.b.mutable_data<float>()[0] = 1;
    EXPECT_EQ(p.by_terms(3).item(), value);
  }
  Case p(false, false, 1, 1, 1);
  p.a.mutable_data<float>()[0] = 0x1.234567p-120F;
  p.b.mutable_data<float>()[0] = 1;
  EXPECT_NEAR(p.by_terms(3).item(), 0x1.234567p-120F, 2 * 0x1p-126F);
}

TEST(BF16Terms, HaveTheSameBitsForAnyNumberOfThreads) {
  const Case p(true, false, 700, 300, 390);
  for (const int terms : all_terms()) {
    std::optional<Tensor> expected;
    for (const int threads : {1, 2, 3, 8}) {
      const WithThreads some(threads);
      const Tensor c = p.by_terms(terms);
      EXPECT_TRUE(identical(c, expected.value_or(c))) << threads << " threads";
      expected = c;
    }
  }
}

TEST(BF16Terms, HaveTheSameBitsInAPartOfTheResult) {
  if (bf16_products() != std::string_view("AMX")) GTEST_SKIP() << "needs AMX";
  const Case whole(false, true, 333, 270, 900);
  Case part(false, true, 41, 35, 900);
  part.a = whole.a.slice(0, 33, 74).contiguous();
  part.b = whole.b.slice(0, 7, 42).contiguous();
  for (const int terms : all_terms())
    EXPECT_TRUE(identical(part.by_terms(terms), whole.by_terms(terms).slice(0, 33, 74).slice(1, 7, 42).contiguous()));
}

/// Sets the precision while it is alive.
struct Precision {
  explicit Precision(MatmulPrecision precision) { set_matmul_precision(precision); }
  ~Precision() { set_matmul_precision(MatmulPrecision::highest); }
};

TEST(MatmulPrecision, ChoosesTheTerms) {
  const Case p(false, true, 200, 210, 300);
  const Tensor own = p.by_terms(0);
  for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium}) {
    const Precision now(precision);
    const int terms = bf16_terms_per_f32();
    const Tensor c = matrix_product(p.left(), p.right());
    EXPECT_TRUE(identical(c, terms == 0 ? own : p.by_terms(terms))) << name(precision);
    const BatchInvariant scope;
    const Tensor invariant = matrix_product(p.left(), p.right());
    set_matmul_precision(MatmulPrecision::highest);
    EXPECT_TRUE(identical(invariant, matrix_product(p.left(), p.right()))) << name(precision);
  }
}

TEST(MatmulPrecision, DoesNotApplyToShortSides) {
  const auto is_own = [](MatmulPrecision precision, std::int64_t m, std::int64_t n, std::int64_t k) {
    const Case p(false, true, m, n, k);
    const Precision now(precision);
    return identical(matrix_product(p.left(), p.right()), p.by_terms(0));
  };
  for (const auto& [m, n, k] : {std::tuple{63, 90, 300}, {90, 24, 300}, {300, 90, 32}})
    EXPECT_TRUE(is_own(MatmulPrecision::medium, m, n, k)) << m << ", " << n << ", " << k;
  for (const auto& [m, n, k] : {std::tuple{128, 128, 300}, {300, 300, 65}, {64, 64, 64}}) {
    EXPECT_TRUE(is_own(MatmulPrecision::highest, m, n, k)) << m << ", " << n << ", " << k;
    EXPECT_EQ(is_own(MatmulPrecision::medium, m, n, k), bf16_products() == std::string_view("f32"));
  }
}

TEST(MatmulPrecision, AppliesWhereBF16IsFaster) {
  const std::string_view unit = bf16_products();
  EXPECT_EQ(bf16_terms_per_f32(), unit == "AMX" ? 3 : 0);
  const Precision high(MatmulPrecision::high);
  EXPECT_EQ(bf16_terms_per_f32(), unit == "AMX" ? 2 : 0);
  set_matmul_precision(MatmulPrecision::medium);
  EXPECT_EQ(bf16_terms_per_f32(), unit == "f32" ? 0 : 1);
}

TEST(MatmulPrecision, ComputesInF32WhatIsNotFiniteAsBF16) {
  const Precision medium(MatmulPrecision::medium);
  Tensor a = ones({70, 80}), b = zeros({80, 90});
  a.mutable_data<float>()[0] = std::numeric_limits<float>::max();
  b.mutable_data<float>()[0] = 1;
  EXPECT_EQ(matrix_product(a, b).at({0, 0}), std::numeric_limits<float>::max());
}

TEST(MatmulPrecision, HasNames) {
  for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium})
    EXPECT_EQ(matmul_precision(name(precision)), precision);
  EXPECT_EQ(message_of([] { matmul_precision("low"); }),
            "matmul_precision: must be one of highest, high, medium but is 'low'");
  EXPECT_EQ(message_of([] { name(static_cast<MatmulPrecision>(3)); }), "MatmulPrecision: 3 is not a precision");
}

}  // namespace
}  // namespace braid::matmul_precision_test
