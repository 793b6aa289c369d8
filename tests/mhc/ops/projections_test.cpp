#include <braid/mhc/ops/projections.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/ops/sinkhorn.h>
#include <tests/mhc/support.h>

namespace braid::mhc::projections_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsNan;
using testing::Pointwise;
using testing::ThrowsMessage;

template <class Iterations>
concept TakesIterations = requires(Var x, Iterations n) { doubly_stochastic(x, 1, n); };
static_assert(TakesIterations<int> && TakesIterations<std::int64_t> && !TakesIterations<double>);

/// The threshold by bisection, where the library sorts.
std::vector<double> naive_simplex_projection(const std::vector<double>& v) {
  double low = -1e4, high = 1e4;
  const auto excess = [&](double theta) {
    double sum = -1;
    for (const double x : v) sum += std::max(x - theta, 0.0);
    return sum;
  };
  for (int i = 0; i < 200; ++i) (excess((low + high) / 2) > 0 ? low : high) = (low + high) / 2;
  std::vector<double> y;
  for (const double x : v) y.push_back(std::max(x - low, 0.0));
  return y;
}

TEST(Projections, SoftmaxLandsInTheSimplex) {
  Rng rng(1);
  const Tensor w = simplex_softmax(random({5, 7}, rng, 10), 0.5).value();
  EXPECT_LT(marginal_error(w, -1), 1e-14);
  EXPECT_THAT(w.to_vector<double>(), Each(Ge(0.0)));
}

TEST(Projections, IdentityPreservingKeepsEpsilonOnTheLast) {
  Rng rng(1);
  const Tensor logits = random({50, 4}, rng, 20), w = identity_preserving(logits, 0.1, 0.7).value();
  EXPECT_LT(marginal_error(w, -1), 1e-14);
  EXPECT_THAT(w.slice(-1, 3, 4).to_vector<double>(), Each(Ge(0.1)));
  EXPECT_THAT(w.to_vector<double>(), Each(Ge(0.0)));
  EXPECT_LT(largest_difference(identity_preserving(logits, 0).value(), simplex_softmax(logits).value()), 1e-15);
}

TEST(Projections, DoublyStochasticHasExactRows) {
  Rng rng(1);
  const Tensor m = doubly_stochastic(random({3, 4, 4}, rng), 0.7).value();
  EXPECT_LT(marginal_error(m, -1), 1e-12);
  EXPECT_LT(marginal_error(m, -2), 1e-2);
  const Tensor z = random({4, 4}, rng, 3);
  EXPECT_TRUE(identical(doubly_stochastic(z).value(), sinkhorn_knopp(z, 20, Marginal::rows).value()));
  EXPECT_TRUE(identical(sinkhorn_knopp(z).value(), sinkhorn_knopp(z, 20, Marginal::columns).value()));
}

TEST(Projections, EuclideanFindsTheNearestPointOfTheSimplex) {
  Rng rng(1);
  for (const std::int64_t n : {1, 2, 3, 9, 64})
    for (const double scale : {0.1, 1.0, 100.0}) {
      const Tensor v = random({n}, rng, scale);
      EXPECT_THAT(simplex_projection(v).value().to_vector<double>(),
                  Pointwise(testing::DoubleNear(1e-12), naive_simplex_projection(v.to_vector<double>())));
    }
}

TEST(Projections, EuclideanLeavesPointsOfTheSimplexAlone) {
  const Tensor v = Tensor::of<double>({2, 3}, {0.25, 0.25, 0.5, 0, 1, 0});
  EXPECT_LT(largest_difference(simplex_projection(v).value(), v), 1e-16);
}

TEST(Projections, EuclideanIgnoresALargeOffset) {
  const Tensor v = Tensor::of<float>({3}, {1e6F, 1e6F, 1e6F - 2});
  EXPECT_THAT(simplex_projection(v).value().to_vector<double>(), ElementsAre(0.5, 0.5, 0));
}

TEST(Projections, EuclideanTurnsLinesWithNonFiniteEntriesIntoNaN) {
  const Tensor v = Tensor::of<double>({2, 2}, {std::nan(""), 1, 0.5, 0.5});
  const Tensor y = simplex_projection(v).value();
  EXPECT_THAT(y.select(0, 0).to_vector<double>(), Each(IsNan()));
  EXPECT_THAT(y.select(0, 1).to_vector<double>(), Each(0.5));
  EXPECT_THAT(simplex_projection(full({3}, INFINITY)).value().to_vector<double>(), Each(IsNan()));
}

TEST(Projections, PassGradcheck) {
  Rng rng(2);
  const auto check = [&](const GradcheckFunction& f, const Shape& shape) {
    const GradcheckResult result = gradcheck(f, {random(shape, rng)});
    EXPECT_TRUE(result.ok) << result.message;
  };
  check([](auto x) { return simplex_softmax(x[0], 0.7); }, {3, 5});
  check([](auto x) { return identity_preserving(x[0], 0.1, 0.7); }, {3, 5});
  check([](auto x) { return doubly_stochastic(x[0], 0.7); }, {2, 4, 4});
  check([](auto x) { return simplex_projection(x[0]); }, {3, 5});
  check([](auto x) { return simplex_projection(x[0]); }, {1});
}

TEST(Projections, BirkhoffFindsTheNearestDoublyStochasticMatrix) {
  Rng rng(3);
  for (const std::int64_t n : {1, 2, 4, 7}) {
    const Tensor v = Tensor(3 * random({n, n}, rng)), m = birkhoff_projection(v);
    EXPECT_LT(marginal_error(m, -1), 1e-8);
    EXPECT_LT(marginal_error(m, -2), 1e-8);
    EXPECT_THAT(m.to_vector<double>(), Each(Ge(-1e-9)));
    EXPECT_LT(largest_difference(birkhoff_projection(m), m), 1e-8);
    // Nearest: v - m makes an obtuse angle with the way to every other point of the set.
    for (int trial = 0; trial < 50; ++trial) {
      const Var other = doubly_stochastic(random({n, n}, rng), 1, 1000);
      EXPECT_LT(sum((Var(v) - m) * (other - m)).value().item(), 1e-6);
    }
    std::vector<std::int32_t> corner(static_cast<std::size_t>(n));
    std::iota(corner.begin(), corner.end(), 0);
    do {
      const Tensor permutation =
          index_select(Var(eye(n, DType::f64)), 0, Tensor::of<std::int32_t>({n}, corner)).value();
      EXPECT_LT(sum((Var(v) - m) * (Var(permutation) - m)).value().item(), 1e-6);
    } while (std::next_permutation(corner.begin(), corner.end()));
  }
}

TEST(Projections, BirkhoffEndsOnNaN) {
  EXPECT_THAT(birkhoff_projection(full({2, 2}, std::nan(""), DType::f64)).to_vector<double>(), Each(IsNan()));
}

TEST(Projections, RejectSettingsThatDoNotFit) {
  const Var z = zeros({3, 3});
  for (const double bad : {0.0, -1.0}) {
    EXPECT_THAT([&] { simplex_softmax(z, bad); },
                ThrowsMessage<ValueError>(HasSubstr("simplex_softmax: temperature must be > 0 but is")));
    EXPECT_THROW(identity_preserving(z, 0.1, bad), ValueError);
    EXPECT_THROW(doubly_stochastic(z, bad), ValueError);
  }
  for (const double bad : {-0.1, 1.0, 1.5})
    EXPECT_THAT([&] { identity_preserving(z, bad); },
                ThrowsMessage<ValueError>(HasSubstr("identity_preserving: epsilon must be in [0, 1) but is")));
  EXPECT_THAT(
      [&] {
        simplex_projection(zeros({2, 0}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("v must have shape [..., n] with n >= 1 but has [2, 0]")));
  EXPECT_THAT(
      [&] {
        birkhoff_projection(zeros({2, 3}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("v must have shape [n, n] with n >= 1 but has [2, 3]")));
}

}  // namespace
}  // namespace braid::mhc::projections_test
