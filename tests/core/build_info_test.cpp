#include <braid/core/build_info.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#if __has_include(<oneapi/dnnl/dnnl_version.h>)
#include <oneapi/dnnl/dnnl_version.h>
#endif

#include <tests/support.h>

namespace braid::build_info_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
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

TEST(BuildInfo, HasTheVersionsOfTheLibraries) {
  const std::string info = build_info();
  int major = 0, minor = 0, patch = 0;
  ASSERT_EQ(std::sscanf(info.c_str() + info.find("fmt "), "fmt %d.%d.%d, ", &major, &minor, &patch), 3);
  EXPECT_EQ(10000 * major + 100 * minor + patch, FMT_VERSION);
  EXPECT_THAT(info, HasSubstr(fmt::format(", Highway {}.{}.{}, ", HWY_MAJOR, HWY_MINOR, HWY_PATCH)));
#if __has_include(<oneapi/dnnl/dnnl_version.h>)
  const std::string onednn =
      fmt::format(", oneDNN {}.{}.{} on OpenMP\n", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
  EXPECT_THAT(info, testing::AnyOf(HasSubstr(", no oneDNN\n"), HasSubstr(onednn)));
#endif
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
