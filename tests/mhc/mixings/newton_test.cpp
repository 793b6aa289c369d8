#include <cmath>

#include <gtest/gtest.h>

#include <braid/autograd/derivatives.h>
#include <braid/mhc/mixings/mixing.h>
#include <tests/mhc/support.h>
#include <tests/support.h>

namespace braid::mhc::newton_test {
namespace {

constexpr double kScales[] = {1, 3, 10, 30};

Tensor projection(const Mixing& mixing, const Tensor& logits) { return mixing(logits).value(); }

Tensor gradient(const Mixing& mixing, const Tensor& logits, const Tensor& cotangent) {
  return vjp([&](const Var& l) { return mixing(l); }, cotangent, logits)[0];
}

double largest(const Tensor& x) { return largest_difference(x, zeros(x.shape(), x.dtype())); }

TEST(Newton, HasExactMarginals) {
  Rng rng(1);
  for (const std::int64_t n : {2, 3, 4, 8})
    for (const double scale : {1, 3, 10, 30, 100}) {
      const Mixing mixing("newton", n);
      const Tensor logits = random({10000, n * n}, rng, scale);
      for (const auto& [dtype, bound] : {std::pair(DType::f64, 1e-12), std::pair(DType::f32, 1e-6)}) {
        const Tensor h = projection(mixing, logits.to(dtype)).to(DType::f64);
        EXPECT_LT(marginal_error(h, -1), bound) << n << ", " << scale;
        EXPECT_LT(marginal_error(h, -2), bound) << n << ", " << scale;
      }
    }
}

TEST(Newton, IsWhereSinkhornConvergesTo) {
  Rng rng(2);
  for (const std::int64_t n : {2, 4, 8})
    for (const double scale : {1.0, 3.0}) {
      const Tensor logits = random({32, n * n}, rng, scale);
      const Tensor converged = projection(Mixing("sinkhorn", n, {.iterations = 50000}), logits);
      EXPECT_LT(largest_difference(projection(Mixing("newton", n), logits), converged), 1e-13) << n << ", " << scale;
    }
}

/// What scales rows and columns scales them back.
TEST(Newton, DoesNotSeeWhatIsAddedToARowOrColumn) {
  Rng rng(3);
  const Mixing mixing("newton", 4);
  const Var logits = random({1000, 4, 4}, rng, 3);
  const Var shifted = logits + random({1000, 4, 1}, rng, 5) + random({1000, 1, 4}, rng, 5);
  const Shape flat = {1000, 16};
  EXPECT_LT(largest_difference(projection(mixing, reshape(logits, flat).value()),
                               projection(mixing, reshape(shifted, flat).value())),
            1e-13);
}

/// Derivatives of <h, cotangent>, matrix by matrix, by differences of fourth order.
Tensor differences(const Mixing& mixing, const Tensor& logits, const Tensor& cotangent) {
  constexpr double kStep = 2e-3;
  std::vector<Var> columns;
  for (std::int64_t e = 0; e < mixing.logits(); ++e) {
    const Var direction = eye(mixing.logits()).to(DType::f64).select(0, e);
    const auto at = [&](double step) {
      return sum(Var(projection(mixing, (Var(logits) + direction * step).value())) * cotangent, {-2, -1});
    };
    columns.push_back((8.0 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep));
  }
  return stack(columns, -1).value();
}

TEST(Newton, HasTheGradientThatDifferencesHave) {
  Rng rng(4);
  for (const std::int64_t n : {2, 3, 4, 8})
    for (const double scale : kScales) {
      const Mixing mixing("newton", n);
      const Tensor logits = random({100, n * n}, rng, scale), cotangent = random({100, n, n}, rng);
      EXPECT_LT(largest_difference(gradient(mixing, logits, cotangent), differences(mixing, logits, cotangent)), 1e-8)
          << n << ", " << scale;
    }
}

/// A matrix that is almost decomposable, and what 300 digits give: entries below 1e-15 are written as 0.
struct Solved {
  std::int64_t n;
  std::vector<double> logits, cotangent, matrix, gradient, product;  // with the Hessian, along direction()

  /// -3, 0, 3, -1, 2, -2, 1, -3, ..
  Tensor direction() const {
    Tensor v({n * n}, DType::f64);
    for (std::int64_t i = 0; i < n * n; ++i) v.mutable_data<double>()[i] = static_cast<double>(3 * i % 7 - 3);
    return v;
  }
};

const std::vector<Solved> kSolved = {
    {3,
     {-43.4794922, -15.4972467, 75.2720032, 22.9570885, 23.2743187, -6.37771893, 37.5009689, 35.7876015, -58.0384407},
     {4, 7, -9, -6, 8, 7, 9, -6, 7},
     {0, 0, 1, 0.26594414830308672, 0.73405585169691328, 0, 0.73405585169691328, 0.26594414830308672, 0},
     {0, 0, 0, -2.8306589451532718, 2.8306589451532718, 0, 2.8306589451532718, -2.8306589451532718, 0},
     {0, 0, 0, 4.6377260318993462, -4.6377260318993462, 0, -4.6377260318993462, 4.6377260318993462, 0}},
    {3,
     {15, 28, -61, -57, -69, 26, 21, 35, 7},
     {4, 7, -9, -6, 8, 7, 9, -6, 7},
     {0.62245933120185456, 0.37754066879814544, 0, 0, 0, 1, 0.37754066879814544, 0.62245933120185456, 0},
     {-2.1150334098143504, 2.1150334098143504, 0, 0, 0, 0, 2.1150334098143504, -2.1150334098143504, 0},
     {-1.8130390378481033, 1.8130390378481033, 0, 0, 0, 0, 1.8130390378481033, -1.8130390378481033, 0}},
    {4,
     {2, -23, -4, 38, 38, 68, -53, -65, 47, -1, 57, -22, 47, 76, -51, -55},
     {6, -5, -1, -3, 3, -1, 8, 6, -2, -7, -6, 9, -2, 6, 6, -4},
     {0, 0, 0, 1, 0.37754066879814544, 0.62245933120185456, 0, 0, 0, 0, 1, 0, 0.62245933120185456, 0.37754066879814544,
      0, 0},
     {0, 0, 0, 0, 1.4100222732095669, -1.4100222732095669, 0, 0, 0, 0, 0, 0, -1.4100222732095669, 1.4100222732095669, 0,
      0},
     {0, 0, 0, 0, 1.2086926918987356, -1.2086926918987356, 0, 0, 0, 0, 0, 0, -1.2086926918987356, 1.2086926918987356, 0,
      0}}};

TEST(Newton, HasTheDerivativesOfMatricesThatAreAlmostDecomposable) {
  for (const Solved& solved : kSolved) {
    const auto tensor = [](const Shape& shape, const std::vector<double>& values) {
      return Tensor::of<double>(shape, std::span<const double>(values));
    };
    const Shape square = {solved.n, solved.n}, flat = {solved.n * solved.n};
    const Tensor logits = tensor(flat, solved.logits), cotangent = tensor(square, solved.cotangent);
    const Mixing mixing("newton", solved.n);
    for (const bool composed : {false, true}) {
      const Form form(composed);
      EXPECT_LT(largest_difference(projection(mixing, logits), tensor(square, solved.matrix)), 1e-14);
      EXPECT_LT(largest_difference(gradient(mixing, logits, cotangent), tensor(flat, solved.gradient)), 4e-14);
    }
    const Var product = hvp([&](const Var& l) { return sum(mixing(l) * cotangent); }, Var(logits), solved.direction());
    EXPECT_LT(largest_difference(product.value(), tensor(flat, solved.product)), 4e-14);
  }
}

TEST(Newton, RoundsToF32OnlyAtTheEnds) {
  Rng rng(5);
  const Mixing mixing("newton", 4);
  for (const double scale : kScales) {
    const Tensor logits = random({1000, 16}, rng, scale).to(DType::f32);
    const Tensor cotangent = random({1000, 4, 4}, rng).to(DType::f32);
    const Tensor exact = logits.to(DType::f64);
    EXPECT_LT(largest_difference(projection(mixing, logits), projection(mixing, exact)), 1e-7);
    EXPECT_LT(
        largest_difference(gradient(mixing, logits, cotangent), gradient(mixing, exact, cotangent.to(DType::f64))),
        1e-6);
  }
}

TEST(Newton, HasNoGradientAtPermutations) {
  const Mixing mixing("newton", 3);
  const Tensor cotangent = Tensor::of<double>({3, 3}, {1, -2, 3, 4, 5, -6, 7, 8, 9});
  for (const double value : {40.0, 100.0, 1e3, 1e6}) {
    const Tensor logits = Tensor::of<double>({9}, {0, value, 0, value, 0, 0, 0, 0, value});
    EXPECT_LT(largest(gradient(mixing, logits, cotangent)), 1e-14) << value;
  }
}

/// Two blocks that almost nothing connects: the gradient inside of them is that of the blocks alone.
TEST(Newton, TakesBlocksApart) {
  Rng rng(8);
  const Tensor cotangent = random({4, 4}, rng);
  const auto block = [](const Var& x) { return slice(slice(x, 0, 0, 2), 1, 0, 2); };
  const Tensor corner = random({2, 2}, rng);
  const Tensor alone = gradient(Mixing("newton", 2), reshape(corner, {4}).value(), block(cotangent).value());
  for (const double gap : {50.0, 100.0, 300.0, 1e3}) {
    const Var rest = scalar(-gap, DType::f64) + Var(random({2, 2}, rng));
    const Var logits = concat({concat({corner, rest}, 1), concat({rest, Var(random({2, 2}, rng))}, 1)}, 0);
    const Var grad = gradient(Mixing("newton", 4), reshape(logits, {16}).value(), cotangent);
    EXPECT_LT(largest_difference(block(reshape(grad, {4, 4})).value(), reshape(alone, {2, 2}).value()), 1e-14) << gap;
  }
}

/// Where softmax has solved all of it, further steps would follow the rounding of sums, far away from entries so small.
TEST(Newton, LeavesWhatIsDoublyStochasticAlready) {
  Tensor logits({32, 4, 4}, DType::f64);
  for (std::int64_t e = 0; e < logits.numel(); ++e) {
    const auto k = static_cast<double>((e / 4 % 4) ^ (e % 4)), slope = static_cast<double>(e / 16) / 10;
    logits.mutable_data<double>()[e] = k < 2 ? slope * k : -60 - k;
  }
  const Tensor h = projection(Mixing("newton", 4), logits.reshape({32, 16}));
  EXPECT_LT(largest_difference((Var(h) / softmax(logits)).value(), ones({32, 4, 4}, DType::f64)), 1e-12);
}

TEST(Newton, StaysFiniteForAnyFiniteLogits) {
  Rng rng(6);
  for (const std::int64_t n : {2, 4, 5, 8, 16})
    for (const double scale : {30.0, 100.0, 1e4, 1e37}) {
      const Mixing mixing("newton", n);
      const Tensor logits = random({64, n * n}, rng, scale), cotangent = random({64, n, n}, rng);
      for (const DType dtype : {DType::f32, DType::f64}) {
        const Tensor h = projection(mixing, logits.to(dtype)).to(DType::f64);
        EXPECT_LT(marginal_error(h, -1), 1e-6);
        if (scale <= 100) {
          EXPECT_LT(marginal_error(h, -2), 1e-6) << n << ", " << scale;
        }
        const double steepest = largest(gradient(mixing, logits.to(dtype), cotangent.to(dtype)));
        EXPECT_LT(steepest, 100) << n << ", " << scale;  // false for NaN
      }
    }
}

TEST(Newton, DoesNotSeeTheOtherMatrices) {
  Rng rng(7);
  const Mixing mixing("newton", 4);
  const Tensor easy = random({40, 16}, rng), hard = random({40, 16}, rng, 30);
  const Tensor both = projection(mixing, stack({Var(easy), Var(hard)}, 1).value());
  EXPECT_TRUE(both.select(1, 0).contiguous().to_vector<double>() == projection(mixing, easy).to_vector<double>());
  EXPECT_TRUE(both.select(1, 1).contiguous().to_vector<double>() == projection(mixing, hard).to_vector<double>());
}

}  // namespace
}  // namespace braid::mhc::newton_test
