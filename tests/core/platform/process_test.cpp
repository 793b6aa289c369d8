#include <braid/core/platform/process.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace braid::process_test {
namespace {

TEST(Process, KeepsVariablesThatAreSet) {
  platform::set_variable("BRAID_PROCESS_TEST", "first");
  platform::set_variable("BRAID_PROCESS_TEST", "second");
  EXPECT_STREQ(std::getenv("BRAID_PROCESS_TEST"), "first");
  unsetenv("BRAID_PROCESS_TEST");
}

TEST(Process, DiscardsAStreamThatProgramsStillDoNotInherit) {
  const int stream = platform::duplicate_of_stderr();
  platform::discard_output(stream);
  EXPECT_EQ(fcntl(stream, F_GETFD), FD_CLOEXEC);
  ::close(stream);
}

}  // namespace
}  // namespace braid::process_test
