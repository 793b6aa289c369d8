#include <gtest/gtest.h>

#include <braid/mhc/mixings/mixing.h>
#include <tests/mhc/support.h>
#include <tests/support.h>

namespace braid::mhc::transport_test {
namespace {

TEST(Transport, FillsRowByRow) {
  const Tensor h = Mixing("transport", 4)(zeros({9}, DType::f64)).value();
  const std::vector<double> first = h.select(0, 0).to_vector<double>();
  EXPECT_EQ(first, (std::vector<double>{0.5, 0.25, 0.125, 0.125}));
}

TEST(Transport, StartsNextToTheIdentity) {
  const Mixing mixing("transport", 4);
  EXPECT_NEAR(at(mixing(mixing.identity()).value(), {3, 3}), .99899, 1e-5);
}

/// Where a logit leaves a row or column next to nothing, the widths of all that follow vanish.
TEST(Transport, KeepsItsSumsWhereWidthsVanish) {
  Rng rng(1);
  for (const double scale : {10.0, 30.0, 1e4, 1e300})
    for (const std::int64_t n : {2, 3, 4, 8}) {
      const Mixing mixing("transport", n);
      const Tensor h = mixing(random({1000, mixing.logits()}, rng, scale)).value();
      EXPECT_LT(marginal_error(h, -1), 1e-14);
      EXPECT_LT(marginal_error(h, -2), 1e-14);
      for (const double entry : h.to_vector<double>()) ASSERT_GE(entry, -1e-6);
    }
}

}  // namespace
}  // namespace braid::mhc::transport_test
