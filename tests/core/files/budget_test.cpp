#include <braid/core/files/budget.h>

#include <limits>

#include <gtest/gtest.h>

#include <tests/support.h>

namespace braid::budget_test {
namespace {

std::string nested(std::size_t depth, const std::string& inside = "") {
  return std::string(depth, '[') + inside + std::string(depth, ']');
}

TEST(Budget, FollowsFromTheSize) {
  Budget budget(100'000, 3);
  EXPECT_TRUE(budget.spend(299'999));
  EXPECT_TRUE(budget.spend(1));
  EXPECT_FALSE(budget.spend(1));
  EXPECT_EQ(message_of([&] { budget.spend(2, "x.npz", "steps"); }),
            "x.npz: a size of 100000 bytes allows 300000 steps but there are 300003");
}

TEST(Budget, IsThatOf64KiBForASmallInput) {
  for (const std::uint64_t bytes : {0, 1, 65536}) {
    Budget budget(bytes);
    EXPECT_TRUE(budget.spend(65536));
    EXPECT_FALSE(budget.spend(1));
  }
  Budget larger(65537);
  EXPECT_TRUE(larger.spend(65537));
}

TEST(Budget, StaysSpent) {
  Budget budget(10);
  EXPECT_FALSE(budget.spend(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_FALSE(budget.spend(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_FALSE(budget.spend(1));
  EXPECT_THROW(budget.spend<ValueError>(0, "encode", "steps"), ValueError);
}

TEST(Budget, LimitsHowDeepJSONNests) {
  check_nesting("x.json", nested(64, "1.5"));
  EXPECT_EQ(message_of([] { check_nesting("x.json", nested(65)); }),
            "x.json: must nest at most 64 deep but does so deeper at byte 64");
  EXPECT_EQ(message_of([] { check_nesting("x.json", nested(64, "{}")); }),
            "x.json: must nest at most 64 deep but does so deeper at byte 64");
  std::string beside = "[";
  for (int i = 0; i < 1000; ++i) beside += nested(63) + ",";
  check_nesting("x.json", beside + "0]");
}

TEST(Budget, AllowsNoZeroByteBehindWhichAParserSeesNothing) {
  EXPECT_EQ(message_of([] { check_nesting("x.json", std::string_view("{}\0 , anything", 14)); }),
            "x.json: must be JSON but has a byte of 0 at byte 2");
}

TEST(Budget, CountsNoBracketsInStrings) {
  check_nesting("x.json", "[\"" + std::string(100, '[') + "\", \"\\\"" + std::string(100, '{') + "\\\\\"]");
  EXPECT_THROW(check_nesting("x.json", "[\"\\\\\"" + nested(64)),
               FileError);  // the quote after two backslashes ends it
  check_nesting("x.json", "\"\\");
  check_nesting("x.json", std::string(100, ']') + nested(64));
}

}  // namespace
}  // namespace braid::budget_test
