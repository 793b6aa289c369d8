#include <braid/core/products/gemm.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/instruction_set.h>
#include <braid/core/kernels/scratch.h>
#include <braid/core/parallel.h>
#include <braid/core/products/kernels/packed_product.h>
#include <braid/core/storage.h>
#include <tests/support.h>
#include <tests/target_guard.h>

namespace braid::gemm_test {
namespace {

constexpr std::int64_t kPadding = 3;  // lda - width
constexpr float kUntouched = 7777;

/// One product: op(a) [m, k] times op(b) [k, n], alpha and beta.
struct Case {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 1, n = 1, k = 1;
  double alpha = 1, beta = 0;

  std::string text() const {
    return fmt::format("{}{} {}x{}x{} alpha {} beta {}", transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                       alpha, beta);
  }
};

/// A row-major matrix whose rows are kPadding longer than its width; the padding holds kUntouched.
template <class T>
struct Matrix {
  std::int64_t rows;
  std::int64_t width;
  std::int64_t ld = width + kPadding;
  std::vector<T> data = std::vector<T>(static_cast<std::size_t>(rows * ld), T(kUntouched));

  T& at(std::int64_t row, std::int64_t column) { return data[static_cast<std::size_t>(row * ld + column)]; }
  T at(std::int64_t row, std::int64_t column) const { return data[static_cast<std::size_t>(row * ld + column)]; }
};

template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t width, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Matrix<T> matrix{rows, width};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < width; ++j) matrix.at(i, j) = static_cast<T>(uniform(engine));
  return matrix;
}

template <class T>
struct Operands {
  Matrix<T> a, b, c;

  explicit Operands(const Case& x)
      : a(x.transpose_a ? random_matrix<T>(x.k, x.m, 1) : random_matrix<T>(x.m, x.k, 1)),
        b(x.transpose_b ? random_matrix<T>(x.n, x.k, 2) : random_matrix<T>(x.k, x.n, 2)),
        c(random_matrix<T>(x.m, x.n, 3)) {}
};

/// The definition, in long double.
template <class T>
Matrix<long double> expected_product(const Case& x, const Operands<T>& in) {
  Matrix<long double> c{x.m, x.n};
  for (std::int64_t i = 0; i < x.m; ++i) {
    for (std::int64_t j = 0; j < x.n; ++j) {
      long double sum = 0;
      for (std::int64_t p = 0; p < x.k; ++p) {
        const long double left = x.transpose_a ? in.a.at(p, i) : in.a.at(i, p);
        sum += left * (x.transpose_b ? in.b.at(j, p) : in.b.at(p, j));
      }
      c.at(i, j) = x.alpha * sum + (x.beta == 0 ? 0 : x.beta * in.c.at(i, j));
    }
  }
  return c;
}

/// What computes a product: gemm_serial, gemm, or the packed kernel, which they call for double.
enum class By { serial, threads, kernel };
constexpr By kAll[] = {By::serial, By::threads, By::kernel};

template <class T>
void multiply_by_kernel(const Product<T>& p) {
  const kernels::PackedProductKernels<T> packed = kernels::packed_product_kernels().of<T>();
  const std::int64_t size = packed.scratch(p.m, p.n, p.k), behind = 256;
  kernels::Buffer<T> scratch(size + behind);
  T* const end = scratch.data() + size;
  std::fill_n(end, behind, T(kUntouched));
  packed.multiply(p, scratch.data());
  EXPECT_EQ(std::count(end, end + behind, T(kUntouched)), behind) << "written behind the scratch";
}

template <class T>
Matrix<T> product(const Case& x, Operands<T> in, By by) {
  const Product<T> p{.m = x.m,
                     .n = x.n,
                     .k = x.k,
                     .a = {in.a.data.data(), in.a.ld, x.transpose_a},
                     .b = {in.b.data.data(), in.b.ld, x.transpose_b},
                     .c = {in.c.data.data(), in.c.ld},
                     .alpha = static_cast<T>(x.alpha),
                     .beta = static_cast<T>(x.beta)};
  if (by == By::kernel && x.m > 0 && x.n > 0 && x.k > 0)
    multiply_by_kernel(p);
  else if (by == By::serial)
    gemm_serial(p);
  else
    gemm(p);
  return in.c;
}

template <class T>
void expect_matches_the_definition(const Case& x) {
  SCOPED_TRACE(x.text());
  const Operands<T> in(x);
  const Matrix<long double> expected = expected_product(x, in);
  const double tolerance = 16 * std::numeric_limits<T>::epsilon() * (1 + std::sqrt(static_cast<double>(x.k)));
  for (const By by : kAll) {
    const Matrix<T> c = product(x, in, by);
    long double worst = 0;
    for (std::int64_t i = 0; i < x.m; ++i) {
      for (std::int64_t j = 0; j < x.n; ++j) worst = std::max(worst, std::abs(c.at(i, j) - expected.at(i, j)));
      for (std::int64_t j = x.n; j < c.ld; ++j) ASSERT_EQ(c.at(i, j), T(kUntouched)) << "padding of row " << i;
    }
    EXPECT_LE(worst, tolerance) << "by " << static_cast<int>(by);
  }
}

template <class T>
std::vector<std::byte> bits(const Matrix<T>& matrix) {
  std::vector<std::byte> bytes(matrix.data.size() * sizeof(T));
  std::memcpy(bytes.data(), matrix.data.data(), bytes.size());
  return bytes;
}

template <class T>
class Gemm : public testing::Test {};

using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Scalars);

/// A product with each operand transposed or not.
template <class T>
void expect_all_match_the_definition(Case x) {
  for (const int transposed : {0, 1, 2, 3}) {
    x.transpose_a = transposed / 2 == 1;
    x.transpose_b = transposed % 2 == 1;
    expect_matches_the_definition<T>(x);
  }
}

TYPED_TEST(Gemm, MatchesTheDefinitionForOddShapes) {
  const WithThreads three(3);
  for (const std::int64_t m : {1, 3, 17, 65})
    for (const std::int64_t n : {1, 3, 17, 65, 129})
      for (const std::int64_t k : {1, 3, 17, 129}) expect_all_match_the_definition<TypeParam>({.m = m, .n = n, .k = k});
}

TYPED_TEST(Gemm, MatchesTheDefinitionForShapesOfSeveralTiles) {
  const WithThreads three(3);
  expect_all_match_the_definition<TypeParam>({.m = 517, .n = 131, .k = 67});
  expect_all_match_the_definition<TypeParam>({.m = 35, .n = 1031, .k = 70});
  expect_all_match_the_definition<TypeParam>({.m = 130, .n = 257, .k = 300});
}

TYPED_TEST(Gemm, MatchesTheDefinitionAroundTheBlocksOfThePackedKernel) {
  const std::int64_t depth = 1536 / sizeof(TypeParam);
  for (const std::int64_t k : {depth, depth + 1, 2 * depth + 3})
    expect_all_match_the_definition<TypeParam>({.m = 7, .n = 18, .k = k, .alpha = -0.5, .beta = 2});
  for (const std::int64_t m : {95, 96, 97, 103})
    expect_all_match_the_definition<TypeParam>({.m = m, .n = 9, .k = depth + 2});
  for (const std::int64_t n : {767, 769}) expect_all_match_the_definition<TypeParam>({.m = 13, .n = n, .k = 5});
}

/// With the roundings that packed_product.h promises: parts of k by fused multiply-adds from zero, added in order.
template <class T>
Matrix<T> rounded_product(const Case& x, const Operands<T>& in) {
  Matrix<T> c = in.c;
  for (std::int64_t i = 0; i < x.m; ++i) {
    for (std::int64_t j = 0; j < x.n; ++j) {
      for (std::int64_t begin = 0; begin < x.k; begin += kernels::kDepth<T>) {
        T sum = 0;
        for (std::int64_t p = begin; p < std::min(x.k, begin + kernels::kDepth<T>); ++p)
          sum = std::fma(x.transpose_a ? in.a.at(p, i) : in.a.at(i, p), x.transpose_b ? in.b.at(j, p) : in.b.at(p, j),
                         sum);
        c.at(i, j) = std::fma(begin == 0 ? static_cast<T>(x.beta) : T{1}, c.at(i, j), static_cast<T>(x.alpha) * sum);
      }
    }
  }
  return c;
}

TYPED_TEST(Gemm, PackedKernelRoundsAsPromisedOnEverySimdTarget) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const std::string name = hwy::TargetName(target);
    if (!name.starts_with("AVX") && !name.starts_with("NEON")) continue;  // no fused multiply-add
    SCOPED_TRACE(name);
    const TargetGuard guard(target);
    for (const std::int64_t n : {4, 6, 8, 12, 16, 24, 31, 48}) {
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          const Case x{transpose_a, transpose_b, 25, n, 400, 0.3, -0.7};
          const Operands<TypeParam> in(x);
          EXPECT_EQ(product(x, in, By::kernel).data, rounded_product(x, in).data) << x.text();
        }
      }
    }
  }
}

TYPED_TEST(Gemm, PackedKernelMatchesTheDefinitionOnEverySimdTarget) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const TargetGuard guard(target);
    for (const std::int64_t size : {1, 2, 5, 8, 23})
      expect_all_match_the_definition<TypeParam>({.m = size, .n = size + 10, .k = size, .alpha = 0.5, .beta = -1});
    expect_all_match_the_definition<TypeParam>({.m = 98, .n = 35, .k = 400});
    expect_all_match_the_definition<TypeParam>({.m = 12, .n = 4, .k = 16});  // fills its scratch: ASan watches the end
  }
}

TYPED_TEST(Gemm, ScalesByAlphaAndAddsBetaTimesC) {
  for (const double alpha : {0.0, 1.0, -0.5}) {
    for (const double beta : {0.0, 1.0, 2.0}) {
      expect_matches_the_definition<TypeParam>({false, true, 33, 20, 9, alpha, beta});
      expect_matches_the_definition<TypeParam>({true, false, 150, 160, 170, alpha, beta});
    }
  }
}

TYPED_TEST(Gemm, ScalesCWhereKIsZero) {
  for (const double beta : {0.0, 1.0, -2.0}) expect_matches_the_definition<TypeParam>({false, false, 5, 7, 0, 1, beta});
}

TYPED_TEST(Gemm, AcceptsNoRowsAndNoColumns) {
  expect_matches_the_definition<TypeParam>({false, true, 0, 4, 3});
  expect_matches_the_definition<TypeParam>({false, true, 4, 0, 3});
  expect_matches_the_definition<TypeParam>({true, false, 0, 0, 0});
}

TYPED_TEST(Gemm, DoesNotReadCWhereBetaIsZero) {
  for (const std::int64_t k : {0, 3, 40}) {
    Operands<TypeParam> in({false, false, 30, 50, k});
    for (TypeParam& value : in.c.data) value = std::numeric_limits<TypeParam>::quiet_NaN();
    for (const By by : kAll) {
      const Matrix<TypeParam> c = product({false, false, 30, 50, k}, in, by);
      for (std::int64_t i = 0; i < c.rows; ++i) {
        for (std::int64_t j = 0; j < c.width; ++j) ASSERT_FALSE(std::isnan(c.at(i, j)));
      }
    }
  }
}

TYPED_TEST(Gemm, PropagatesNanAndInfinityThroughZeros) {
  for (const std::int64_t size : {3, 40}) {
    const Case x{false, false, size, size, size};
    Operands<TypeParam> in(x);
    for (std::int64_t j = 0; j < size; ++j) in.a.at(1, j) = 0;
    in.b.at(2, 0) = std::numeric_limits<TypeParam>::quiet_NaN();
    in.b.at(2, 1) = std::numeric_limits<TypeParam>::infinity();
    for (const By by : kAll) {
      const Matrix<TypeParam> c = product(x, in, by);
      for (std::int64_t i = 0; i < size; ++i) EXPECT_TRUE(std::isnan(c.at(i, 0)));
      EXPECT_TRUE(std::isnan(c.at(1, 1)));  // 0 * infinity
      EXPECT_TRUE(std::isinf(c.at(0, 1)));
      EXPECT_EQ(c.at(1, 2), 0);
    }
  }
}

TYPED_TEST(Gemm, HasTheSameBitsForAnyNumberOfThreads) {
  for (const Case& x : {Case{false, true, 300, 500, 700}, Case{true, false, 128, 100, 2048},
                        Case{true, false, 300, 200, 500}, Case{false, false, 700, 65, 384}}) {
    SCOPED_TRACE(x.text());
    const Operands<TypeParam> in(x);
    const WithThreads one(1);
    const auto expected = bits(product(x, in, By::threads));
    for (const int threads : {2, 3, 5, 16}) {
      const WithThreads several(threads);
      EXPECT_EQ(bits(product(x, in, By::threads)), expected) << threads << " threads";
    }
  }
}

TEST(GemmOfDoubles, HasTheBitsOfThePackedKernelHoweverCIsCut) {
  const WithThreads three(3);
  for (const Case& x : {Case{false, true, 300, 500, 700}, Case{true, false, 517, 131, 67}}) {
    SCOPED_TRACE(x.text());
    const Operands<double> in(x);
    const auto expected = bits(product(x, in, By::kernel));
    EXPECT_EQ(bits(product(x, in, By::serial)), expected);
    EXPECT_EQ(bits(product(x, in, By::threads)), expected);
  }
}

TEST(GemmOfFloats, HasTheBitsOfThePackedKernelWhereOneDnnIsSlow) {
  std::vector<Case> cases{{false, true, 8, 256, 255}, {false, true, 1, 700, 700}, {true, true, 3, 400, 24}};
  if (instruction_set() == InstructionSet::avx2) {
    cases.push_back({false, false, 9, 512, 300});
    cases.push_back({true, false, 129, 30, 300});
  }
  for (const Case& x : cases) {
    SCOPED_TRACE(x.text());
    const Operands<float> in(x);
    const auto expected = bits(product(x, in, By::kernel));
    EXPECT_EQ(bits(product(x, in, By::serial)), expected);
    EXPECT_EQ(bits(product(x, in, By::threads)), expected);
  }
}

TEST(GemmThreads, StartsNoThreadsOfItsOwn) {
  const std::filesystem::path tasks = "/proc/self/task";
  if (!std::filesystem::exists(tasks)) GTEST_SKIP() << "needs /proc";
  const WithThreads two(2);
  const auto threads = [&] {
    return std::distance(std::filesystem::directory_iterator(tasks), std::filesystem::directory_iterator());
  };
  parallel_for(2, 1,
               [](std::int64_t, std::int64_t) {});  // starts the pool's worker; a sanitizer may have a thread, too
  const auto own = threads();
  product<float>({false, true, 512, 512, 512}, Operands<float>({false, true, 512, 512, 512}), By::threads);
  EXPECT_EQ(threads(), own);
}

TEST(GemmOfDoubles, HasATileForEachOfTwoThreads) {
  const WithThreads two(2);
  const Case x{.m = 256, .n = 256, .k = 256};
  const auto scratch_of = [&](By by) {
    const std::int64_t before = memory_stats().total_bytes;
    product(x, Operands<double>(x), by);
    return memory_stats().total_bytes - before;
  };
  EXPECT_EQ(scratch_of(By::threads), 2 * scratch_of(By::serial));
}

}  // namespace
}  // namespace braid::gemm_test
