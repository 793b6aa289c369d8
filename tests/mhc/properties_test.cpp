// What must hold for any logits and sizes; rapidcheck chooses them.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <braid/mhc/ops/projections.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <tests/mhc/support.h>

namespace braid::mhc::properties_test {
namespace {

/// In [low, high), evenly: rapidcheck's own range starts with small numbers.
int between(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high)); }

struct Draw {
  Rng rng;
  int n;
  double scale;
  Marginal exact;

  int first_axis() const { return exact == Marginal::rows ? -2 : -1; }
  int last_axis() const { return exact == Marginal::rows ? -1 : -2; }
};

Draw draw(double largest_scale) {
  return {Rng(*rc::gen::arbitrary<std::uint64_t>()), between(1, 17), largest_scale * between(1, 101) / 100,
          *rc::gen::element(Marginal::rows, Marginal::columns)};
}

/// The diameter of exp(z) in Hilbert's metric: the largest |z_ik + z_jl - z_il - z_jk|.
double projective_diameter(const Tensor& z) {
  const std::int64_t n = z.size(0);
  const std::vector<double> v = z.to_vector<double>();
  const auto at = [&](std::int64_t i, std::int64_t k) { return v[static_cast<std::size_t>(i * n + k)]; };
  double widest = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t l = 0; l < n; ++l) widest = std::max(widest, at(i, k) + at(j, l) - at(i, l) - at(j, k));
  return widest;
}

RC_GTEST_PROP(SinkhornProperties, EntriesLieInTheUnitIntervalAndOneMarginalIsExact, ()) {
  Draw d = draw(1000);
  const Tensor p = sinkhorn_knopp(random({3, d.n, d.n}, d.rng, d.scale), between(1, 30), d.exact).value();
  for (const double entry : p.to_vector<double>()) RC_ASSERT(entry >= 0 && entry <= 1 + 1e-12);
  RC_ASSERT(marginal_error(p, d.last_axis()) < 1e-12);
}

RC_GTEST_PROP(SinkhornProperties, TheOtherMarginalContractsAsBirkhoffSays, ()) {
  // Franklin and Lorenz 1989: each iteration contracts the distance to the limit by tanh(diameter / 4)^2.
  Draw d = draw(3);
  const int iterations = between(1, 40);
  const Tensor z = random({d.n, d.n}, d.rng, d.scale);
  const double diameter = projective_diameter(z);
  const double distance = diameter * std::pow(std::tanh(diameter / 4), 2 * (iterations - 1));
  const Tensor p = sinkhorn_knopp(z, iterations, d.exact).value();
  RC_ASSERT(marginal_error(p, d.first_axis()) <= std::expm1(distance) + 1e-12);
}

RC_GTEST_PROP(SinkhornProperties, GradientsAreFiniteAndIgnoreShiftsOfTheFirstLines, ()) {
  Draw d = draw(1000);
  const Tensor z = random({2, d.n, d.n}, d.rng, d.scale), dy = random(z.shape(), d.rng);
  const Tensor dz = vjp([&](const Var& x) { return sinkhorn_knopp(x, 20, d.exact); }, dy, z)[0];
  for (const double entry : dz.to_vector<double>()) RC_ASSERT(std::isfinite(entry));
  const double size = reduce_max(abs(dz).value()).item();
  for (const double sum : reduce_sum(dz, {d.first_axis()}).to_vector<double>())
    RC_ASSERT(std::abs(sum) <= 1e-12 * (1 + size));
}

RC_GTEST_PROP(ProjectionProperties, WeightsLieInTheirSets, ()) {
  Draw d = draw(100);
  const Tensor z = random({4, d.n}, d.rng, d.scale);
  const double epsilon = between(0, 100) / 100.0, temperature = between(1, 50) / 10.0;
  const Tensor identity = identity_preserving(z, epsilon, temperature).value();
  for (const Tensor& w : {simplex_softmax(z, temperature).value(), identity, simplex_projection(z).value()}) {
    RC_ASSERT(marginal_error(w, -1) < 1e-12);
    for (const double entry : w.to_vector<double>()) RC_ASSERT(entry >= 0);
  }
  for (const double last : identity.slice(-1, d.n - 1, d.n).to_vector<double>()) RC_ASSERT(last >= epsilon - 1e-15);
}

}  // namespace
}  // namespace braid::mhc::properties_test
