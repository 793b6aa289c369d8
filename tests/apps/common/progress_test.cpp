#include <apps/common/progress.h>

#include <utility>

#include <gtest/gtest.h>

namespace braid::progress_test {
namespace {

TEST(HumanDuration, HasTheTwoLargestUnits) {
  const std::pair<double, const char*> durations[] = {
      {-1, "0s"},       {0.4, "0s"},     {0.6, "1s"},     {59.4, "59s"},   {59.6, "1m00s"},  {185, "3m05s"},
      {3599, "59m59s"}, {3600, "1h00m"}, {7140, "1h59m"}, {7384, "2h03m"}, {90000, "25h00m"}};
  for (const auto& [seconds, text] : durations) EXPECT_EQ(apps::human_duration(seconds), text) << seconds;
}

}  // namespace
}  // namespace braid::progress_test
