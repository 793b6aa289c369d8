#include "../../../apps/common/run_folder.h"

#include <filesystem>
#include <new>

#include <gtest/gtest.h>

#include <braid/core/error.h>
#include <tests/failing_allocations.h>
#include <tests/support.h>

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

auto open_files() { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); }

TEST(FolderLock, LeaksNothingWhicheverAllocationFails) {
  const fs::path folder = fs::path(testing::TempDir()) / "braid_folder_lock";
  fs::create_directories(folder);
  const auto before = open_files();
  bool failed = true;
  for (int allocations = 0; failed; ++allocations) {
    {
      const FailingAllocations faults({.after = allocations, .times = 1, .all = true});
      try {
        const FolderLock lock(folder);
      } catch (const std::bad_alloc&) {
      } catch (const FileError&) {  // a folder that cannot be listed for want of memory
      }
      failed = faults.failed();
    }
    EXPECT_EQ(open_files(), before) << allocations;
  }
  fs::remove_all(folder);
}

TEST(FolderLock, SaysWhyAFolderCannotBeLocked) {
  EXPECT_EQ(message_of([] { FolderLock("/no/such/folder"); }),
            "--out: /no/such/folder cannot be locked: No such file or directory");
}

TEST(ResultsFolder, SaysWhichFolderCannotBeMadeAndWhy) {
  EXPECT_EQ(message_of([] { make_results_folder("/dev/null/run"); }),
            "--out: /dev/null/run cannot be made: Not a directory");
}

}  // namespace
}  // namespace braid::apps
