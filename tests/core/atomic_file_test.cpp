#include <braid/core/atomic_file.h>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <braid/core/error.h>

namespace braid {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Each test has an empty folder of its own.
struct AtomicFile : testing::Test {
  AtomicFile() { fs::create_directories(folder); }
  ~AtomicFile() override { fs::remove_all(folder); }

  void write(const std::string& text) {
    write_file_atomically(file, [&](std::ostream& out) { out << text; });
  }
  std::string read() const { return (std::stringstream() << std::ifstream(file).rdbuf()).str(); }
  auto files() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_atomic_file_" + test);
  const fs::path file = folder / "data";
};

TEST_F(AtomicFile, WritesAndReplaces) {
  write("first, and longer");
  EXPECT_EQ(read(), "first, and longer");
  write("second");
  EXPECT_EQ(read(), "second");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFile, KeepsTheOldFileUntilTheNewOneIsComplete) {
  write("old");
  write_file_atomically(file, [&](std::ostream& out) {
    out << "new" << std::flush;
    EXPECT_EQ(read(), "old");
  });
  EXPECT_EQ(read(), "new");
}

TEST_F(AtomicFile, KeepsTheOldFileWhenTheWriterThrows) {
  write("old");
  const auto interrupted = [](std::ostream& out) {
    out << "half";
    throw std::runtime_error("interrupted");
  };
  EXPECT_THROW(write_file_atomically(file, interrupted), std::runtime_error);
  EXPECT_EQ(read(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  write("old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message = "nothing was thrown";
  try {
    write(std::string(100'000, 'x'));
  } catch (const FileError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "write_file_atomically: " + file.string() + ".tmp: cannot be written: File too large");
  EXPECT_EQ(read(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFile, ReplacesATemporaryThatACrashLeft) {
  std::ofstream(file.string() + ".tmp") << "a longer text that a crash left behind";
  write("new");
  EXPECT_EQ(read(), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFile, RejectsFoldersDevicesAndMissingFolders) {
  const auto message = [](const fs::path& path) {
    try {
      write_file_atomically(path, [](std::ostream&) {});
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message(folder),
            "write_file_atomically: " + folder.string() + ": must be a regular file but is something else");
  EXPECT_EQ(message("/dev/null"), "write_file_atomically: /dev/null: must be a regular file but is something else");
  EXPECT_THAT(message(folder / "missing" / "data"), HasSubstr("missing/data.tmp: cannot be created: No such file"));
}

}  // namespace
}  // namespace braid
