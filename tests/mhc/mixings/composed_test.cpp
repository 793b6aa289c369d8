#include <braid/mhc/mixings/composed.h>

#include <thread>

#include <gtest/gtest.h>

#include <braid/autograd/checkpoint.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <tests/mhc/support.h>

namespace braid::mhc::composed_test {
namespace {

TEST(Composed, IsAboutItsThreadAndNests) {
  EXPECT_FALSE(composed());
  {
    const Composed outer(Composed::Ops::connections);
    EXPECT_TRUE(composed());
    EXPECT_FALSE(Composed::active());
    {
      const Composed inner;
      EXPECT_TRUE(composed());
      EXPECT_TRUE(Composed::active());
    }
    EXPECT_FALSE(Composed::active());
    EXPECT_TRUE(composed());
    std::thread([] { EXPECT_FALSE(composed()); }).join();
  }
  EXPECT_FALSE(composed());
}

TEST(Composed, HoldsForTheRecomputationOfACheckpoint) {
  Rng rng(1);
  const Tensor logits = random({3, 4, 4}, rng), dy = random({3, 4, 4}, rng);
  const auto gradient = [&](bool composed_forward, bool composed_backward) {
    Tape tape;
    const Var z = tape.watch(logits);
    const auto forward = [&] {
      const Form form(composed_forward);
      return checkpoint([](const Var& v) { return sinkhorn_knopp(v); }, z);
    };
    const Var y = forward();
    const Form form(composed_backward);
    tape.backward(y, dy);
    return tape.gradient(z);
  };
  EXPECT_TRUE(identical(gradient(false, true), gradient(false, false)));
  EXPECT_TRUE(identical(gradient(true, false), gradient(true, true)));
  EXPECT_FALSE(identical(gradient(true, true), gradient(false, false)));
}

}  // namespace
}  // namespace braid::mhc::composed_test
