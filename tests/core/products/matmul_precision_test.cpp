// Products of f32 by products of bf16: against sums in f64, within what the parts leave out and adding up in f32 may
// cost.
#include <braid/core/products/matmul_precision.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/products/detail/gemm_in_parts.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul.h>
#include <braid/core/random.h>
#include <tests/core/products/magnitudes.h>
#include <tests/support.h>

namespace braid::matmul_precision_test {
namespace {

/// a [m, k] b [k, n] + beta start, as they lie in memory, in f32.
struct Product {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  float beta = 0;
  Tensor a, b, start;

  Product(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float beta = 0)
      : transpose_a(transpose_a), transpose_b(transpose_b), m(m), n(n), k(k), beta(beta) {
    Rng rng(static_cast<std::uint64_t>(m + 1000 * n + 1'000'000 * k));
    a = randn(transpose_a ? Shape{k, m} : Shape{m, k}, rng);
    b = randn(transpose_b ? Shape{n, k} : Shape{k, n}, rng);
    start = randn({m, n}, rng);
  }

  Tensor left() const { return transpose_a ? a.transpose() : a; }
  Tensor right() const { return transpose_b ? b.transpose() : b; }

  /// f32's own.
  Tensor by_multiply_adds() const {
    Tensor c(Shape{m, n}, DType::f32);
    gemm<float>(transpose_a, transpose_b, m, n, k, 1, a.data<float>(), a.size(1), b.data<float>(), b.size(1), 0,
                c.mutable_data<float>(), n);
    return c;
  }

  /// What is computed in so many parts; nullopt when it refuses, with `start` as it was if it counts.
  std::optional<Tensor> in_parts(int parts, const Tensor& row = {}) const {
    Tensor c = start.clone();
    const bool done =
        detail::gemm_in_parts(parts, transpose_a, transpose_b, m, n, k, a.data<float>(), a.size(1), b.data<float>(),
                              b.size(1), beta, c.mutable_data<float>(), n, row.defined() ? row.data<float>() : nullptr);
    if (done) return c;
    EXPECT_TRUE(beta == 0 || identical(c, start));
    return std::nullopt;
  }
};

/// How many parts there are to try.
std::vector<int> all_parts() {
  return bf16_products() == std::string_view("AMX") ? std::vector{1, 2, 3} : std::vector{1};
}

/// What is left out, as a share of |a| |b|: a part is the nearest of 8 bits to what those before leave, so that two
/// leave 2^-16 and three nothing; of the products of parts, one of 2^-16 and two of 2^-24 stay out.
double left_out(int parts) { return parts == 1 ? 0x1p-7 + 0x1p-16 : parts == 2 ? 3 * 0x1p-16 : 2 * 0x1p-24 + 0x1p-32; }

void expect_product(const Tensor& c, const Product& p, int parts, const Tensor& row = {}) {
  const std::vector<double> exact =
                                matrix_product(p.left().to(DType::f64), p.right().to(DType::f64)).to_vector<double>(),
                            sums = matrix_product(magnitudes(p.left()), magnitudes(p.right())).to_vector<double>(),
                            start = p.start.to_vector<double>(), got = c.to_vector<double>(),
                            rows = (row.defined() ? row : zeros({p.n})).to_vector<double>();
  const double additions = static_cast<double>((p.k + 1) * parts * (parts + 1) / 2) * 0x1p-24;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double added = p.beta * start[i] + rows[i % rows.size()];
    ASSERT_NEAR(got[i], exact[i] + added, (left_out(parts) + additions) * (sums[i] + std::abs(added))) << i;
  }
}

TEST(GemmInParts, LeavesOutNoMoreThanItSays) {
  const WithThreads three(3);
  for (const int parts : all_parts())
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {3, 5, 7}, {17, 257, 64}, {130, 33, 301}}) {
          const Product p(transpose_a, transpose_b, m, n, k);
          SCOPED_TRACE(testing::Message()
                       << parts << " parts " << m << "x" << n << "x" << k << " " << transpose_a << transpose_b);
          expect_product(p.in_parts(parts).value(), p, parts);
        }
}

TEST(GemmInParts, AddsToWhatIsThereAndARow) {
  Rng rng(5);
  const Tensor row = randn({90}, rng);
  for (const int parts : all_parts())
    for (const std::int64_t k : {50, 1600}) {
      const Product p(false, true, 70, 90, k, 0.5F), plain(false, true, 70, 90, k);
      expect_product(p.in_parts(parts).value(), p, parts);
      expect_product(plain.in_parts(parts, row).value(), plain, parts, row);
    }
}

/// The root of the mean square of the errors against f64.
double error(const Tensor& c, const Product& p) {
  const std::vector<double> got = c.to_vector<double>(),
                            exact =
                                matrix_product(p.left().to(DType::f64), p.right().to(DType::f64)).to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < got.size(); ++i) sum += (got[i] - exact[i]) * (got[i] - exact[i]);
  return std::sqrt(sum / static_cast<double>(got.size()));
}

TEST(GemmInParts, OfThreeIsAsExactAsF32) {
  if (bf16_products() != std::string_view("AMX")) GTEST_SKIP() << "only by AMX";
  for (const std::int64_t k : {64, 384, 1536, 3072})
    for (const bool one_sign : {false, true}) {
      Product p(false, true, 200, 150, k);
      for (Tensor* factor : {&p.a, &p.b})
        if (one_sign) *factor = magnitudes(*factor).to(DType::f32);
      EXPECT_LE(error(p.in_parts(3).value(), p), error(p.by_multiply_adds(), p)) << k << ", " << one_sign;
    }
}

TEST(GemmInParts, RefusesWhatIsNotFiniteAsBF16) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::max()})
    for (const int parts : all_parts())
      for (const bool left : {true, false})
        for (const float beta : {0.0F, 0.5F}) {
          Product p(false, false, 40, 50, 1600, beta);
          Tensor& factor = left ? p.a : p.b;
          factor.mutable_data<float>()[factor.numel() - 34] = value;
          EXPECT_FALSE(p.in_parts(parts).has_value()) << value;
        }
  EXPECT_FALSE(Product(false, false, 2, 3, 0).in_parts(1).has_value());
}

TEST(GemmInParts, HoldsAllOfANumberButWhatIsBelowNormal) {
  if (bf16_products() != std::string_view("AMX")) GTEST_SKIP() << "only by AMX";
  for (const float value : {1 + 0x1p-23F, 16777215.0F, -0x1.fffffep-100F, 0x1.fep127F}) {
    Product p(false, false, 1, 1, 1);
    p.a.mutable_data<float>()[0] = value;
    p.b.mutable_data<float>()[0] = 1;
    EXPECT_EQ(p.in_parts(3).value().item(), value);
  }
  Product p(false, false, 1, 1, 1);
  p.a.mutable_data<float>()[0] = 0x1.234567p-120F;
  p.b.mutable_data<float>()[0] = 1;
  EXPECT_NEAR(p.in_parts(3).value().item(), 0x1.234567p-120F, 2 * 0x1p-126F);
}

TEST(GemmInParts, HasTheSameBitsForAnyNumberOfThreads) {
  const Product p(true, false, 700, 300, 390);
  for (const int parts : all_parts()) {
    std::optional<Tensor> expected;
    for (const int threads : {1, 2, 3, 8}) {
      const WithThreads some(threads);
      const Tensor c = p.in_parts(parts).value();
      EXPECT_TRUE(identical(c, expected.value_or(c))) << threads << " threads";
      expected = c;
    }
  }
}

TEST(GemmInParts, HasTheSameBitsInAPartOfTheResult) {
  if (bf16_products() != std::string_view("AMX")) GTEST_SKIP() << "only by AMX";
  const Product whole(false, true, 333, 270, 900);
  Product part(false, true, 41, 35, 900);
  part.a = whole.a.slice(0, 33, 74).contiguous();
  part.b = whole.b.slice(0, 7, 42).contiguous();
  for (const int parts : all_parts())
    EXPECT_TRUE(identical(part.in_parts(parts).value(),
                          whole.in_parts(parts).value().slice(0, 33, 74).slice(1, 7, 42).contiguous()));
}

/// Sets the precision as long as it lives.
struct Precision {
  explicit Precision(MatmulPrecision precision) { set_matmul_precision(precision); }
  ~Precision() { set_matmul_precision(MatmulPrecision::highest); }
};

TEST(MatmulPrecision, DecidesHowProductsAreMade) {
  const Product p(false, true, 200, 210, 300);
  const Tensor own = p.by_multiply_adds();
  for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium}) {
    const Precision now(precision);
    const int parts = detail::parts_of_f32();
    const Tensor c = matrix_product(p.left(), p.right());
    EXPECT_TRUE(identical(c, parts == 0 ? own : p.in_parts(parts).value())) << name(precision);
    const BatchInvariant scope;
    const Tensor invariant = matrix_product(p.left(), p.right());
    set_matmul_precision(MatmulPrecision::highest);
    EXPECT_TRUE(identical(invariant, matrix_product(p.left(), p.right()))) << name(precision);
  }
}

TEST(MatmulPrecision, LeavesShortSidesAlone) {
  const auto is_own = [](MatmulPrecision precision, std::int64_t m, std::int64_t n, std::int64_t k) {
    const Product p(false, true, m, n, k);
    const Precision now(precision);
    return identical(matrix_product(p.left(), p.right()), p.by_multiply_adds());
  };
  for (const auto& [m, n, k] : {std::tuple{63, 90, 300}, {90, 24, 300}, {300, 90, 32}})
    EXPECT_TRUE(is_own(MatmulPrecision::medium, m, n, k)) << m << ", " << n << ", " << k;
  for (const auto& [m, n, k] : {std::tuple{128, 128, 300}, {300, 300, 65}})
    EXPECT_TRUE(is_own(MatmulPrecision::highest, m, n, k)) << m << ", " << n << ", " << k;
}

TEST(MatmulPrecision, IsUsedWhereAUnitIsFaster) {
  const std::string_view unit = bf16_products();
  EXPECT_EQ(detail::parts_of_f32(), unit == "AMX" ? 3 : 0);
  const Precision high(MatmulPrecision::high);
  EXPECT_EQ(detail::parts_of_f32(), unit == "AMX" ? 2 : 0);
  set_matmul_precision(MatmulPrecision::medium);
  EXPECT_EQ(detail::parts_of_f32(), unit == "f32" ? 0 : 1);
}

TEST(MatmulPrecision, KeepsWhatIsNotFiniteAsF32HasIt) {
  const Precision medium(MatmulPrecision::medium);
  Tensor a = ones({70, 80}), b = zeros({80, 90});
  a.mutable_data<float>()[0] = std::numeric_limits<float>::max();
  b.mutable_data<float>()[0] = 1;
  EXPECT_EQ(matrix_product(a, b).at({0, 0}), std::numeric_limits<float>::max());
}

TEST(MatmulPrecision, HasNames) {
  for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium})
    EXPECT_EQ(matmul_precision(name(precision)), precision);
  EXPECT_EQ(message_of([] { matmul_precision("low"); }), "matmul_precision: 'low' is not one of highest, high, medium");
  EXPECT_EQ(message_of([] { name(static_cast<MatmulPrecision>(3)); }), "MatmulPrecision: 3 is none");
}

}  // namespace
}  // namespace braid::matmul_precision_test
