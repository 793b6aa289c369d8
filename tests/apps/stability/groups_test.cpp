#include <apps/stability/groups.h>

#include <limits>

#include <gtest/gtest.h>

namespace braid::stability {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Group losses(std::initializer_list<double> values) {
  Group group;
  for (const double value : values) {
    Result result{};
    result.diverged = value > 100;
    result.final_loss = value;
    group.push_back(result);
  }
  return group;
}

TEST(Groups, SayWhatIsFiniteAndWhatIsMissing) {
  struct Case {
    Group group;
    const char *median, *spread, *diverged;
  };
  for (const auto& [group, median, spread, diverged] : {
           Case{losses({}), "-", "-", "0 of 0"},
           Case{losses({kNaN}), "not finite", "not finite", "0 of 1"},
           Case{losses({0.5}), "0.5", "0.5 (0.5 to 0.5)", "0 of 1"},
           Case{losses({300, 0.5, 2}), "2", "2 (0.5 to 300)", "1 of 3"},
           Case{losses({4, 1, kNaN, 2, 3}), "2.5", "2.5 (1 to 4, 1 not finite)", "0 of 5"},
       }) {
    EXPECT_EQ(median_cell(group, &Result::final_loss), median);
    EXPECT_EQ(spread_cell(group, &Result::final_loss), spread);
    EXPECT_EQ(diverged_cell(group), diverged);
  }
}

}  // namespace
}  // namespace braid::stability
