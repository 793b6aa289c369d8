#include <cmath>
#include <limits>
#include <string_view>

#include <gtest/gtest.h>

#include <braid/core/products/matmul.h>
#include <braid/mhc/mixings/mixing.h>
#include <tests/mhc/support.h>

namespace braid::mhc::rotations_test {
namespace {

double orthogonality_error(const Tensor& h) {
  const Tensor one = eye(h.size(-1), h.dtype()).broadcast_to(h.shape()).contiguous();
  return largest_difference(matrix_product(h, h.transpose()).to(DType::f64), one.to(DType::f64));
}

class Rotations : public testing::TestWithParam<std::string_view> {
 protected:
  template <class F>
  void for_sizes(F f) const {
    for (const std::int64_t n : {2, 4, 8, 16})
      if (GetParam() != "quaternion" || n == 4) f(Mixing(GetParam(), n));
  }
};

INSTANTIATE_TEST_SUITE_P(Mixings, Rotations, testing::Values("cayley", "quaternion", "isometric"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Rotations, AreOrthogonalForLargeLogitsToo) {
  Rng rng(1);
  for_sizes([&](const Mixing& mixing) {
    for (const double scale : {1, 3, 10, 30}) {
      const Tensor logits = random({500, mixing.logits()}, rng, scale);
      EXPECT_LT(orthogonality_error(mixing(logits).value()), 1e-12) << "n " << mixing.n();
    }
  });
}

TEST_P(Rotations, StartAtTheIdentity) {
  for_sizes([&](const Mixing& mixing) {
    const double error = largest_difference(mixing(mixing.start()).value(), eye(mixing.n(), DType::f64));
    EXPECT_LE(error, GetParam() == "isometric" ? 1e-15 : 0);
  });
}

TEST_P(Rotations, DoNotOverflow) {
  Rng rng(2);
  for_sizes([&](const Mixing& mixing) {
    const Tensor signs = random({50, mixing.logits()}, rng);
    const double largest = std::numeric_limits<float>::max();
    for (const double scale : {1e4, 1e10, 1e20, 5e37, largest}) {
      const Var logits = clamp(Var(signs) * scale, -largest, largest);
      const Tensor h = mixing(logits.value().to(DType::f32)).value();
      // f32 leaves few digits of logits that are nearly singular, but no NaN and no zeros.
      EXPECT_LT(orthogonality_error(h), 0.5) << "n " << mixing.n() << ", scale " << scale;
    }
  });
}

TEST_P(Rotations, OfInfiniteLogitsAreNotFinite) {
  for_sizes([&](const Mixing& mixing) {
    if (mixing.logits() == 0) return;
    Tensor logits = zeros({mixing.logits()}, DType::f64);
    logits.mutable_data<double>()[0] = std::numeric_limits<double>::infinity();
    bool finite = true;
    for (const double entry : mixing(logits).value().to_vector<double>()) finite &= std::isfinite(entry);
    EXPECT_FALSE(finite);
  });
}

}  // namespace
}  // namespace braid::mhc::rotations_test
