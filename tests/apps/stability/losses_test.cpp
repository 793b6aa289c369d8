#include <apps/stability/losses.h>

#include <cmath>

#include <gtest/gtest.h>

namespace braid::stability {
namespace {

/// Losses 1, 2, .. count.
Losses counting(int count) {
  Losses losses(100);
  for (int loss = 1; loss <= count; ++loss) losses.add(loss);
  return losses;
}

TEST(Losses, EndAtTheMeanOfTheLastTenth) {
  EXPECT_EQ(counting(1).final_loss(), 1);
  EXPECT_EQ(counting(19).final_loss(), 19);
  EXPECT_EQ(counting(20).final_loss(), 19.5);
  EXPECT_EQ(counting(99).final_loss(), 95);
  EXPECT_EQ(counting(100).final_loss(), 95.5);
}

TEST(Losses, DivergeAboveAMultipleOfTheFirst) {
  EXPECT_EQ(counting(100).reason(), "");
  Losses losses = counting(101);
  EXPECT_TRUE(losses.diverged());
  EXPECT_EQ(losses.reason(), "loss above 100 times its start");
  EXPECT_EQ(losses.final_loss(), 101) << "the last one";
  losses.add(1);
  EXPECT_FALSE(losses.diverged()) << "by the newest alone";
  losses.add(NAN);
  EXPECT_EQ(losses.reason(), "loss not finite");
  EXPECT_TRUE(std::isnan(losses.final_loss()));
  Losses small(3);
  small.add(0.5), small.add(2);
  EXPECT_TRUE(small.diverged());
}

TEST(Losses, GiveAResult) {
  EXPECT_EQ(counting(20).result().dump(),
            R"({"result":"trained","reason":"","steps":20,"first_loss":1.0,"final_loss":19.5})");
  EXPECT_EQ(counting(101).result().at("result"), "diverged");
}

}  // namespace
}  // namespace braid::stability
