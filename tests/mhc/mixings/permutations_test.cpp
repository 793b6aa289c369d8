#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/mixings/mixing.h>
#include <tests/mhc/support.h>
#include <tests/support.h>

namespace braid::mhc::permutations_test {
namespace {

TEST(Permutations, AreInLexicographicOrder) {
  const Mixing mixing("permutations", 3);
  const std::vector<std::vector<int>> orders = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (std::size_t k = 0; k < orders.size(); ++k) {
    std::vector<double> logits(6, -100.0), expected(9, 0.0);
    logits[k] = 0;
    for (std::size_t i = 0; i < 3; ++i) expected[i * 3 + static_cast<std::size_t>(orders[k][i])] = 1;
    const Tensor h = mixing(Tensor::of<double>({6}, logits)).value();
    EXPECT_LT(largest_difference(h, Tensor::of<double>({3, 3}, expected)), 1e-40) << k;
  }
}

TEST(Permutations, StartNextToTheIdentity) {
  const Mixing mixing("permutations", 4);
  const double h00 = at(mixing(mixing.identity()).value(), {0, 0});
  EXPECT_NEAR(h00, (1 + 5 * std::exp(-8)) / (1 + 23 * std::exp(-8)), 1e-12);
}

TEST(Permutations, EndAtSixStreams) {
  EXPECT_EQ(Mixing("permutations", 6).logits(), 720);
  EXPECT_EQ(message_of([] { Mixing("permutations", 7); }),
            "Mixing: permutations supports 1 <= n <= 6 (n! logits) but n is 7");
}

TEST(Permutations, OfSixStreamsAreTheSameFusedAndComposed) {
  Rng rng(1);
  const Mixing mixing("permutations", 6);
  const Tensor logits = random({5, 720}, rng), cotangent = random({5, 6, 6}, rng);
  const auto evaluate = [&](bool composed) {
    const Form form(composed);
    return std::pair(mixing(logits).value(), vjp(mixing, cotangent, logits)[0]);
  };
  const auto [fused, dfused] = evaluate(false);
  const auto [composed, dcomposed] = evaluate(true);
  EXPECT_LT(largest_difference(fused, composed), 1e-14);
  EXPECT_LT(largest_difference(dfused, dcomposed), 1e-14);
}

}  // namespace
}  // namespace braid::mhc::permutations_test
