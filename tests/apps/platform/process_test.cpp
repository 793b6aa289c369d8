#include "../../../apps/platform/process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <string>

#include <braid/core/parallel.h>

#include "../../../apps/platform/signals.h"

namespace braid::process_test {
namespace {

using platform::HeldSignals;

TEST(Process, ReportsHowItsChildrenEnd) {
  const int threads = num_threads();
  set_num_threads(1);  // ends the other threads, to which the system might give the signals
  const HeldSignals signals(HeldSignals::Which::interruptions_and_ends_of_children);
  const std::map<int, std::string> expected = {
      {platform::start_child([] { return 0; }), ""},
      {platform::start_child([] { return 3; }), "exit code 3"},
      {platform::start_child([] { return std::raise(SIGKILL); }), "killed by signal 9"},
  };
  std::map<int, std::string> ended;
  while (ended.size() < expected.size()) {
    EXPECT_EQ(signals.next(), HeldSignals::Signal::end_of_child);
    while (const auto child = platform::ended_child()) ended[child->id] = child->failure;
  }
  EXPECT_EQ(ended, expected);
  set_num_threads(threads);
}

TEST(Process, RunsPrograms) {
  const auto run = [](const std::string& command) { return platform::run_program("/bin/sh", {"-c", command}); };
  EXPECT_EQ(run("echo a warning >&2; exit 0"), "");
  EXPECT_EQ(run("exit 1"), "exit code 1");
  EXPECT_EQ(run("kill -9 $$"), "killed by signal 9");
  EXPECT_EQ(run("printf 'Traceback:\\n  line 1\\nMemoryError: no more\\n\\n' >&2; exit 1"), "MemoryError: no more");
  EXPECT_EQ(run("seq 100000 >&2; exit 3"), "100000");
  EXPECT_EQ(platform::run_program("/no/such/program", {}), "No such file or directory");
}

}  // namespace
}  // namespace braid::process_test
