#include <braid/mhc/ops/sinkhorn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/mhc/support.h>
#include <tests/support.h>

namespace braid::mhc::sinkhorn_test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Marginal kBoth[] = {Marginal::columns, Marginal::rows};

Tensor random_logits(const Shape& shape, double scale, std::uint64_t seed = 1) {
  Rng rng(seed);
  return random(shape, rng, scale);
}

double log_sum_exp(const std::vector<double>& line) {
  const double top = *std::ranges::max_element(line);
  double sum = 0;
  for (const double v : line) sum += std::exp(v - top);
  return top + std::log(sum);
}

/// One matrix, every half-step in log space, by explicit loops over lines.
std::vector<double> naive_sinkhorn(std::vector<double> log_p, int n, int iterations, Marginal exact) {
  const auto at = [n](bool row, int line, int k) {
    return static_cast<std::size_t>(row ? line * n + k : k * n + line);
  };
  for (int step = 0; step < 2 * iterations; ++step) {
    const bool rows = (step % 2 == 0) == (exact == Marginal::columns);
    for (int line = 0; line < n; ++line) {
      std::vector<double> values;
      for (int k = 0; k < n; ++k) values.push_back(log_p[at(rows, line, k)]);
      const double shift = log_sum_exp(values);
      for (int k = 0; k < n; ++k) log_p[at(rows, line, k)] -= shift;
    }
  }
  for (double& v : log_p) v = std::exp(v);
  return log_p;
}

Tensor sinkhorn_gradient(const Tensor& logits, const Tensor& dy, int iterations, Marginal exact) {
  return vjp([&](const Var& z) { return sinkhorn_knopp(z, iterations, exact); }, dy, logits)[0];
}

Tensor composed(const Tensor& logits, int iterations, Marginal exact) {
  const Composed scope;
  return sinkhorn_knopp(logits, iterations, exact).value();
}

Tensor composed_gradient(const Tensor& logits, const Tensor& dy, int iterations, Marginal exact) {
  const Composed scope;
  return sinkhorn_gradient(logits, dy, iterations, exact);
}

TEST(Sinkhorn, MatchesANaiveIterationInLogSpace) {
  for (const int n : {1, 2, 3, 4, 5, 8, 16, 64})
    for (const int iterations : {1, 2, 20})
      for (const Marginal exact : kBoth) {
        const Tensor logits = random_logits({n, n}, 3);
        const std::vector<double> expected = naive_sinkhorn(logits.to_vector<double>(), n, iterations, exact);
        const Tensor p = sinkhorn_knopp(logits, iterations, exact).value();
        EXPECT_LT(largest_difference(p, Tensor::of<double>({n, n}, expected)), 1e-13) << "n = " << n;
      }
}

TEST(Sinkhorn, MatchesItsComposedFormForwardAndBackward) {
  for (const int n : {1, 2, 3, 4, 5, 8, 16, 64})
    for (const int iterations : {1, 2, 20})
      for (const Marginal exact : kBoth) {
        const Tensor logits = random_logits({2, n, n}, 2), dy = random_logits({2, n, n}, 1, 2);
        EXPECT_LT(
            largest_difference(sinkhorn_knopp(logits, iterations, exact).value(), composed(logits, iterations, exact)),
            1e-13);
        EXPECT_LT(largest_difference(sinkhorn_gradient(logits, dy, iterations, exact),
                                     composed_gradient(logits, dy, iterations, exact)),
                  1e-12)
            << "n = " << n << ", iterations = " << iterations;
      }
}

TEST(Sinkhorn, GradientsPassGradcheckTruncatedAndConverged) {
  for (const int n : {1, 2, 3, 4, 5, 8})
    for (const int iterations : {1, 3, 20, 100})
      for (const Marginal exact : kBoth) {
        const auto f = [&](std::span<const Var> x) { return sinkhorn_knopp(x[0], iterations, exact); };
        const GradcheckResult result = gradcheck(f, {random_logits({2, n, n}, 1.5)});
        EXPECT_TRUE(result.ok) << result.message;
      }
}

TEST(Sinkhorn, GradientsPassGradcheckForManyStreams) {
  for (const int n : {16, 64}) {
    const auto f = [](std::span<const Var> x) { return sinkhorn_knopp(x[0], 20, Marginal::rows); };
    const GradcheckResult result = gradcheck(f, {random_logits({n, n}, 1)});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(Sinkhorn, KeepsEntriesInTheUnitIntervalAndOneMarginalExact) {
  for (const double scale : {1.0, 10.0, 300.0})
    for (const int n : {2, 4, 7, 16}) {
      const Tensor logits = random_logits({50, n, n}, scale);
      const Tensor columns = sinkhorn_knopp(logits, 20, Marginal::columns).value();
      const Tensor rows = sinkhorn_knopp(logits, 20, Marginal::rows).value();
      EXPECT_LT(marginal_error(columns, -2), 1e-12);
      EXPECT_LT(marginal_error(rows, -1), 1e-12);
      for (const Tensor& p : {columns, rows})
        EXPECT_THAT(p.to_vector<double>(), Each(testing::AllOf(testing::Ge(0.0), testing::Le(1.0 + 1e-12))));
    }
}

TEST(Sinkhorn, BringsTheOtherMarginalCloseForLogitsOfOrderOne) {
  // The 99th percentile after 20 iterations at n = 4 is 1e-6 for N(0, 1); the worst of 2000 is larger.
  const Tensor p = sinkhorn_knopp(random_logits({2000, 4, 4}, 1), 20, Marginal::columns).value();
  std::vector<double> errors = reduce_sum(p, {-1}).to_vector<double>();
  for (double& e : errors) e = std::abs(e - 1);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() * 99 / 100], 1e-5);
  EXPECT_LT(marginal_error(sinkhorn_knopp(random_logits({50, 4, 4}, 1), 500).value(), -1), 1e-12);
}

TEST(Sinkhorn, IsTheTransposeOfTheOtherOrder) {
  const Tensor logits = random_logits({3, 5, 5}, 2);
  const Tensor rows = sinkhorn_knopp(logits, 3, Marginal::rows).value();
  const Tensor columns = sinkhorn_knopp(logits.transpose(), 3, Marginal::columns).value();
  EXPECT_TRUE(identical(rows, columns.transpose()));
}

TEST(Sinkhorn, IgnoresAShiftOfTheLineThatComesFirst) {
  const Tensor logits = random_logits({4, 4}, 1);
  std::vector<double> shifted = logits.to_vector<double>();
  for (std::size_t j = 0; j < 4; ++j) shifted[4 + j] += 700;  // one row
  const Tensor p = sinkhorn_knopp(logits, 2).value(),
               q = sinkhorn_knopp(Tensor::of<double>({4, 4}, shifted), 2).value();
  EXPECT_LT(largest_difference(p, q), 1e-12);
}

/// Logits on which exp, or one line shifted by the wrong maximum, overflows or divides by zero.
std::vector<Tensor> hard_logits() {
  std::vector<Tensor> cases;
  for (const double size : {500.0, 1000.0}) {
    std::vector<double> diagonal(16, 0.0), row(16, 0.0), column(16, 0.0), checkers(16), corner(16, -size);
    for (std::size_t i = 0; i < 4; ++i) {
      diagonal[5 * i] = size;
      row[i] = -size;
      column[4 * i] = -size;
    }
    for (std::size_t i = 0; i < 16; ++i) checkers[i] = (i + i / 4) % 2 == 0 ? size : -size;
    corner[0] = size;
    for (const auto& values : {diagonal, row, column, checkers, corner})
      cases.push_back(Tensor::of<double>({4, 4}, values));
  }
  cases.push_back(random_logits({20, 4, 4}, 500));
  cases.push_back(random_logits({5, 16, 16}, 400));
  return cases;
}

TEST(Sinkhorn, SurvivesLogitsOfAThousandForwardAndBackward) {
  for (const Tensor& logits : hard_logits())
    for (const Marginal exact : kBoth)
      for (const DType dtype : {DType::f32, DType::f64}) {
        const Tensor z = logits.to(dtype), dy = random_logits(z.shape(), 1, 3).to(dtype);
        const Tensor p = sinkhorn_knopp(z, 20, exact).value();
        EXPECT_LT(marginal_error(p, exact == Marginal::columns ? -2 : -1), dtype == DType::f32 ? 1e-5 : 1e-12);
        const CheckFinite check_finite;
        EXPECT_NO_THROW(sinkhorn_gradient(z, dy, 20, exact));
      }
}

TEST(Sinkhorn, MatchesItsComposedFormOnHardLogits) {
  for (const Tensor& logits : hard_logits())
    for (const Marginal exact : kBoth) {
      const Tensor dy = random_logits(logits.shape(), 1, 3);
      EXPECT_LT(largest_difference(sinkhorn_knopp(logits, 20, exact).value(), composed(logits, 20, exact)), 1e-10);
      EXPECT_LT(largest_difference(sinkhorn_gradient(logits, dy, 20, exact), composed_gradient(logits, dy, 20, exact)),
                1e-10);
    }
}

TEST(Sinkhorn, AgreesWithItselfInSinglePrecision) {
  const Tensor logits = random_logits({100, 4, 4}, 5).to(DType::f32),
               dy = random_logits({100, 4, 4}, 1, 2).to(DType::f32);
  for (const Marginal exact : kBoth) {
    EXPECT_LT(largest_difference(sinkhorn_knopp(logits, 20, exact).value(),
                                 sinkhorn_knopp(logits.to(DType::f64), 20, exact).value()),
              5e-6);
    EXPECT_LT(largest_difference(sinkhorn_gradient(logits, dy, 20, exact),
                                 sinkhorn_gradient(logits.to(DType::f64), dy.to(DType::f64), 20, exact)),
              2e-5);
  }
}

TEST(Sinkhorn, TreatsEachMatrixOfABatchAlone) {
  for (const int batch : {0, 1, 3, 1001}) {
    const Tensor logits = random_logits({batch, 4, 4}, 1);
    const Tensor p = sinkhorn_knopp(logits).value();
    EXPECT_EQ(p.shape(), Shape({batch, 4, 4}));
    for (int b = 0; b < batch; b += 100)
      EXPECT_TRUE(identical(p.select(0, b), sinkhorn_knopp(logits.select(0, b)).value()));
    EXPECT_EQ(sinkhorn_gradient(logits, zeros(logits.shape(), DType::f64), 20, Marginal::rows).shape(), logits.shape());
  }
  EXPECT_EQ(sinkhorn_knopp(random_logits({2, 3, 5, 5}, 1)).shape(), Shape({2, 3, 5, 5}));
}

TEST(Sinkhorn, ReadsViews) {
  const Tensor wide = random_logits({4, 3, 4, 2}, 1);
  const Tensor view = wide.permute({1, 3, 0, 2}).slice(1, 1, 2);  // [3, 1, 4, 4]
  EXPECT_TRUE(identical(sinkhorn_knopp(view).value(), sinkhorn_knopp(view.clone()).value()));
}

TEST(Sinkhorn, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tensor logits = random_logits({997, 5, 5}, 2), dy = random_logits({997, 5, 5}, 1, 2);
  const WithThreads one(1);
  const Tensor p = sinkhorn_knopp(logits).value(), dz = sinkhorn_gradient(logits, dy, 20, Marginal::columns);
  for (const int threads : {2, 3, 16}) {
    const WithThreads several(threads);
    EXPECT_TRUE(identical(p, sinkhorn_knopp(logits).value()));
    EXPECT_TRUE(identical(dz, sinkhorn_gradient(logits, dy, 20, Marginal::columns)));
  }
}

TEST(Sinkhorn, TurnsAMatrixWithANonFiniteLogitIntoNaN) {
  for (const double bad :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    for (const Marginal exact : kBoth) {
      std::vector<double> values(32, 0.5);
      values[21] = bad;  // in the second matrix
      const Tensor logits = Tensor::of<double>({2, 4, 4}, values);
      const Tensor p = sinkhorn_knopp(logits, 20, exact).value();
      EXPECT_THAT(p.select(0, 0).to_vector<double>(), Each(testing::DoubleNear(0.25, 1e-15)));
      EXPECT_THAT(p.select(0, 1).to_vector<double>(), Each(testing::IsNan()));
      const Tensor dz = sinkhorn_gradient(logits, ones(logits.shape(), DType::f64), 20, exact);
      EXPECT_THAT(dz.select(0, 1).to_vector<double>(), Each(testing::IsNan()));
      const CheckFinite check_finite;
      EXPECT_THROW(sinkhorn_knopp(logits, 20, exact), NonFiniteError);
    }
}

TEST(Sinkhorn, RejectsWhatIsNotABatchOfSquareMatrices) {
  const auto call = [](const Shape& shape) { return [shape] { sinkhorn_knopp(zeros(shape)); }; };
  EXPECT_THAT(call({3, 4}), ThrowsMessage<ShapeError>(HasSubstr(
                                "sinkhorn_knopp: logits must have shape [..., n, n] with n >= 1 but has [3, 4]")));
  EXPECT_THAT(call({4}), ThrowsMessage<ShapeError>(HasSubstr("but has [4]")));
  EXPECT_THAT(call({2, 0, 0}), ThrowsMessage<ShapeError>(HasSubstr("but has [2, 0, 0]")));
}

TEST(Sinkhorn, RejectsFewerThanOneIterationAndOtherDtypes) {
  for (const int iterations : {0, -1})
    EXPECT_THAT(
        [&] {
          sinkhorn_knopp(zeros({2, 2}), iterations);
        },
        ThrowsMessage<ValueError>(HasSubstr("sinkhorn_knopp: iterations must be >= 1 but is")));
  for (const DType dtype : {DType::i32, DType::bf16})
    EXPECT_THAT(
        [&] {
          sinkhorn_knopp(zeros({2, 2}, dtype));
        },
        ThrowsMessage<DTypeError>(HasSubstr("sinkhorn_knopp: ")));
}

}  // namespace
}  // namespace braid::mhc::sinkhorn_test
