#include <braid/core/platform/process.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace braid::process_test {
namespace {

TEST(Process, KeepsVariablesThatAreSet) {
  platform::set_variable("BRAID_PROCESS_TEST", "first");
  platform::set_variable("BRAID_PROCESS_TEST", "second");
  EXPECT_STREQ(std::getenv("BRAID_PROCESS_TEST"), "first");
  unsetenv("BRAID_PROCESS_TEST");
}

}  // namespace
}  // namespace braid::process_test
