#include <braid/core/build_info.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/support.h>

namespace braid::build_info_test {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;

TEST(BuildInfo, HasTheVersionOfTheProject) {
  EXPECT_EQ(version(), BRAID_PROJECT_VERSION);
  EXPECT_THAT(build_info(), testing::StartsWith("braid " BRAID_PROJECT_VERSION ", "));
}

TEST(BuildInfo, IsALineForEachPart) {
  EXPECT_THAT(build_info(), MatchesRegex("braid [^\n]+\n"
                                         "compiler: [^\n]+\n"
                                         "libraries: fmt [0-9.]+, Highway [0-9.]+, [^\n]+\n"
                                         "instruction set: [^\n]+"));
}

TEST(BuildInfo, HasTheInstructionSetInUse) {
  for (const InstructionSet set : instruction_sets()) {
    const WithInstructionSet guard(set);
    EXPECT_THAT(build_info(), EndsWith(fmt::format("\ninstruction set: {} ({}), best {}", name(set), kernel_target(),
                                                   name(instruction_sets().back()))));
  }
}

}  // namespace
}  // namespace braid::build_info_test
