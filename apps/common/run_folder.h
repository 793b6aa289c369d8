#pragma once
#include <filesystem>

namespace braid::apps {

/// Throws FileError or ValueError when `folder`, the value of --out, cannot be made or written to. Writes nothing.
void check_results_folder(const std::filesystem::path& folder);

/// Makes the folder, the value of --out, with its parents. Throws FileError when that fails.
void make_results_folder(const std::filesystem::path& folder);

/// A lock that lets one process use a folder, by a file there: held while this object, or a child process forked
/// meanwhile, is alive. Removes files that a killed process left half-written, and at last its own.
class FolderLock {
 public:
  /// Throws FileError naming the folder when another process holds it or it cannot be locked. Waits a moment for a
  /// process that is just ending.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  struct File {
    std::filesystem::path path;
    int number = -1;
    bool locked = false;
    ~File();
  };
  File file_;
};

}  // namespace braid::apps
