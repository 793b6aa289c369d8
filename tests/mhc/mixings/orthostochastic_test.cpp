#include <gtest/gtest.h>

#include <braid/mhc/mixings/mixing.h>
#include <tests/mhc/support.h>

namespace braid::mhc::orthostochastic_test {
namespace {

double largest_gradient(const Mixing& mixing, const Tensor& logits) {
  Rng rng(1);
  const Tensor cotangent = random({mixing.n(), mixing.n()}, rng);
  const auto grad = value_and_grad([&](const Var& l) { return sum(mixing(l) * cotangent); })(Var(logits)).second;
  return largest_difference(grad.value(), zeros(logits.shape(), DType::f64));
}

TEST(Orthostochastic, HasNoGradientAtThePublishedStartButAtOurs) {
  for (const std::int64_t n : {2, 4, 8})
    for (const int block : {1, 2, 3})
      for (const bool composed : {false, true}) {
        const Form form(composed);
        const Mixing mixing("orthostochastic", n, {.block = block});
        EXPECT_EQ(largest_gradient(mixing, mixing.identity()), 0);
        EXPECT_GT(largest_gradient(mixing, mixing.start()), 0.1);
      }
}

TEST(Orthostochastic, StartsNearTheIdentity) {
  const Mixing mixing("orthostochastic", 4);
  const Tensor one = eye(4, DType::f64);
  EXPECT_EQ(largest_difference(mixing(mixing.identity()).value(), one), 0);
  EXPECT_LT(largest_difference(mixing(mixing.start()).value(), one), 0.15);
  for (const double logit : mixing.start().to_vector<double>()) EXPECT_LE(std::abs(logit), 0.1);
}

}  // namespace
}  // namespace braid::mhc::orthostochastic_test
