#include <braid/core/files/atomic_file.h>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <braid/core/error.h>
#include <braid/core/files/file_system.h>
#include <tests/failing_allocations.h>
#include <tests/support.h>

namespace braid::atomic_file_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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

TEST_F(AtomicFile, KeepsTheOldFileWhenTheStreamFails) {
  write("old");
  const auto failing = [](std::ostream& out) {
    out << "half";
    out.setstate(std::ios::failbit);
  };
  EXPECT_EQ(message_of([&] { write_file_atomically(file, failing); }),
            "write_file_atomically: " + file.string() + ": the stream failed: Input/output error");
  EXPECT_EQ(read(), "old");
}

TEST_F(AtomicFile, NeedsNoFileSystemThatSyncsFolders) {
  struct OfFilesAlone : FileSystem {
    int fsync(int) override {
      errno = EINVAL;
      return -1;
    }
  } file_system_of_files;
  const WithFileSystem in_use(file_system_of_files);
  write("new");
  EXPECT_EQ(read(), "new");
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
  EXPECT_EQ(message, "write_file_atomically: " + file.string() + ": cannot be written: File too large");
  EXPECT_EQ(read(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFile, RemovesTemporariesThatCrashesLeft) {
  const auto names = [&] {
    std::set<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) found.insert(entry.path().filename());
    return found;
  };
  const std::set<std::string> others = {"data",
                                        "data.tmp",
                                        "data.0123456789abcdeg.tmp",
                                        "data.g123456789abcdef.tmp",
                                        "0123456789abcdef.tmp",
                                        ".0123456789abcdef.tmp"};
  for (const std::string& name : others) std::ofstream(folder / name) << "text";
  std::ofstream(folder / "data.0123456789abcdef.tmp") << "half";
  std::ofstream(folder / "data.x.fedcba9876543210.tmp") << "half";
  remove_temporary_files(folder);
  EXPECT_EQ(names(), others);
  EXPECT_EQ(message_of([&] { remove_temporary_files(folder / "missing"); }),
            "remove_temporary_files: " + (folder / "missing").string() + ": No such file or directory");
}

TEST_F(AtomicFile, GivesEachWriterAFileOfItsOwn) {
  write_file_atomically(file, [&](std::ostream& out) {
    out << "outer";
    write("inner");
    EXPECT_EQ(read(), "inner");
  });
  EXPECT_EQ(read(), "outer");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFile, ReplacesALinkAndLeavesItsTarget) {
  std::ofstream(folder / "target") << "target";
  fs::create_symlink(folder / "target", file);
  write("new");
  EXPECT_FALSE(fs::is_symlink(file));
  EXPECT_EQ(read(), "new");
  EXPECT_EQ(fs::file_size(folder / "target"), 6U);
}

TEST_F(AtomicFile, WritesPiecesOfAllSizes) {
  std::string expected;
  write_file_atomically(file, [&](std::ostream& out) {
    for (std::size_t size = 1; size < 200'000; size = size * 3 / 2 + 1) {
      const std::string piece(size, static_cast<char>('a' + size % 26));
      out << piece;
      out.put('\n');
      expected += piece + '\n';
    }
    for (int i = 0; i < 40'000; ++i) out.put('x');
    expected += std::string(40'000, 'x');
  });
  EXPECT_EQ(read(), expected);
}

/// Lets a call fail: the one that comes after `left` others.
struct FailingFileSystem : FileSystem {
  FailingFileSystem(int left, int error, bool write_short) : left(left), error(error), write_short(write_short) {}

  int left;
  int error;
  bool write_short;  // a write that fails writes a byte instead, and the next one fails
  bool write_nothing = false;
  int open_files = 0;

  bool fails() {
    if (left-- != 0) return false;
    errno = error;
    return true;
  }

  int open(const fs::path& path, OpenFor use) override {
    const int opened = fails() ? -1 : FileSystem::open(path, use);
    if (opened >= 0) ++open_files;
    return opened;
  }
  std::ptrdiff_t read_at(std::uint64_t position, int descriptor, void* out, std::size_t bytes) override {
    if (fails()) return -1;
    return FileSystem::read_at(position, descriptor, out, std::min<std::size_t>(bytes, 3));  // as network drives may
  }
  std::ptrdiff_t write(int descriptor, const void* data, std::size_t bytes) override {
    if (!fails()) return FileSystem::write(descriptor, data, bytes);
    if (write_nothing) return 0;
    if (!write_short) return -1;
    write_short = false;
    left = 0;
    return FileSystem::write(descriptor, data, 1);
  }
  int fsync(int descriptor) override { return fails() ? -1 : FileSystem::fsync(descriptor); }
  int close(int descriptor) override {
    --open_files;
    const int closed = FileSystem::close(descriptor);
    return fails() ? -1 : closed;
  }
  int rename(const fs::path& from, const fs::path& to) override { return fails() ? -1 : FileSystem::rename(from, to); }
  int unlink(const fs::path& path) override { return FileSystem::unlink(path); }  // the way back from failures
};

TEST_F(AtomicFile, LosesAndLeaksNothingWhicheverCallFails) {
  const std::string text(100'000, 'x');
  for (const int error : {ENOSPC, EIO, EDQUOT, EACCES})
    for (const bool write_short : {false, true}) {
      bool failed = true;
      int calls = 0;
      for (; failed; ++calls) {
        write("old");
        FailingFileSystem faults(calls, error, write_short);
        const WithFileSystem in_use(faults);
        const std::string message = message_of([&] {
          write_file_atomically(file, [&](std::ostream& out) { out << "new " << text << std::flush << text; });
        });
        failed = faults.left < 0;
        EXPECT_EQ(faults.open_files, 0) << message;
        EXPECT_EQ(files(), 1) << message;
        const bool replaced = message.find("folder") != std::string::npos || message == "nothing was thrown";
        EXPECT_EQ(read(), replaced ? "new " + text + text : "old") << message;
        if (message != "nothing was thrown") {
          EXPECT_THAT(message, AllOf(StartsWith("write_file_atomically: " + file.string() + ": "),
                                     EndsWith(std::strerror(error)), Not(HasSubstr("\n"))));
        } else {
          EXPECT_TRUE(!failed || calls == 9);  // a folder that cannot be closed is no loss
        }
      }
      EXPECT_GE(calls, 9);  // open, write three times, fsync, close, rename; open, fsync, close
    }
}

TEST_F(AtomicFile, SaysWhyAWriteFailedWhateverTheWriterCallsNext) {
  FailingFileSystem faults(1, ENOSPC, false);
  const WithFileSystem in_use(faults);
  EXPECT_EQ(message_of([&] {
              write_file_atomically(file, [](std::ostream& out) {
                out << "new" << std::flush;
                errno = 0;
              });
            }),
            "write_file_atomically: " + file.string() + ": cannot be written: No space left on device");
}

TEST_F(AtomicFile, SyncsTheFolderOfTheFile) {
  struct Recording : FileSystem {
    std::vector<std::string> synced;

    int open(const fs::path& path, OpenFor use) override {
      if (use == OpenFor::syncing) synced.push_back(path.string());
      return FileSystem::open(path, use);
    }
  } recording;
  const WithFileSystem in_use(recording);
  write("new");
  EXPECT_THAT(recording.synced, testing::ElementsAre(folder.string()));
}

TEST_F(AtomicFile, FailsWhenNothingIsWritten) {
  write("old");
  FailingFileSystem faults(1, 0, false);
  faults.write_nothing = true;
  const WithFileSystem in_use(faults);
  EXPECT_EQ(message_of([&] { write("new"); }),
            "write_file_atomically: " + file.string() + ": cannot be written: Input/output error");
  EXPECT_EQ(read(), "old");
}

TEST_F(AtomicFile, LosesAndLeaksNothingWhicheverAllocationFails) {
  for (const int times : {1, 1 << 20}) {
    bool failed = true;
    for (int allocations = 0; failed; ++allocations) {
      write("old");
      FailingFileSystem counts(-1, 0, false);
      const WithFileSystem in_use(counts);
      bool threw = false;
      {
        const FailingAllocations faults({.after = allocations, .times = times, .all = true});
        try {
          write("new");
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        failed = faults.failed();
      }
      EXPECT_EQ(threw, failed) << allocations;
      EXPECT_EQ(counts.open_files, 0) << allocations;
      EXPECT_EQ(files(), 1) << allocations;
      EXPECT_EQ(read(), threw ? "old" : "new") << allocations;
    }
  }
}

TEST_F(AtomicFile, GoesOnAfterSignalsAndShortWrites) {
  const std::string text(100'000, 'x');
  for (const bool write_short : {false, true})
    for (int calls = 0; calls < 3; ++calls) {  // open, write, fsync
      FailingFileSystem faults(calls, EINTR, write_short);
      const WithFileSystem in_use(faults);
      write(text);
      EXPECT_EQ(read(), text);
      EXPECT_LT(faults.left, 0);
    }
}

TEST_F(AtomicFile, IsReadInSpiteOfSignalsAndShortReads) {
  write("some text");
  for (int calls = 0; calls < 4; ++calls) {  // open, read three times
    FailingFileSystem faults(calls, EINTR, false);
    const WithFileSystem in_use(faults);
    RegularFile regular("here", file);
    std::string text(9, ' ');
    regular.read(text.data(), text.size());
    EXPECT_EQ(text, "some text");
    EXPECT_LT(faults.left, 0);
  }
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
  EXPECT_THAT(message(folder / "missing" / "data"), HasSubstr("missing/data: cannot be created: No such file"));
}

}  // namespace
}  // namespace braid::atomic_file_test
