#include "../../../apps/generate/stop_text.h"

#include <gtest/gtest.h>

#include <braid/core/random.h>

namespace braid::generate {
namespace {

TEST(StopText, HoldsBackWhatMayBeginIt) {
  StopText stop("\n\nEnd");
  EXPECT_EQ(stop.push("a\n"), "a");
  EXPECT_EQ(stop.push("b\n\n"), "\nb");
  EXPECT_EQ(stop.push("\nEn"), "\n");
  EXPECT_FALSE(stop.reached());
  EXPECT_EQ(stop.push("d more"), "");
  EXPECT_TRUE(stop.reached());
  EXPECT_EQ(stop.push("and more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopText, GivesBackWhatDidNotBecomeIt) {
  StopText stop("abc"), none("");
  EXPECT_EQ(stop.push("xab"), "x");
  EXPECT_EQ(stop.finish(), "ab");
  EXPECT_EQ(none.push("xab"), "xab");
  EXPECT_EQ(none.finish(), "");
}

TEST(StopText, CutsAtTheFirstPlaceHoweverTheTextComes) {
  Rng rng(1);
  for (int trial = 0; trial < 500; ++trial) {
    std::string text, told;
    for (auto n = rng.below(40); n > 0; --n) text += static_cast<char>('a' + rng.below(2));
    StopText stop("aabaa");
    for (const char c : text) told += stop.push({&c, 1});
    told += stop.finish();
    EXPECT_EQ(told, text.substr(0, text.find("aabaa")));
    EXPECT_EQ(stop.reached(), text.find("aabaa") != text.npos);
  }
}

}  // namespace
}  // namespace braid::generate
