#pragma once
#include <filesystem>

namespace braid::apps {

/// Throws FileError or ValueError when `folder`, the value of --out, cannot be made or written to. Writes nothing.
void check_results_folder(const std::filesystem::path& folder);

/// Makes the folder, the value of --out, with its parents. Throws FileError when that fails.
void make_results_folder(const std::filesystem::path& folder);

/// A lock that lets one process use a folder: held while this object, or a child process forked meanwhile, is alive.
/// Removes files that a killed process left half-written.
class FolderLock {
 public:
  /// Throws FileError naming the folder when another process holds it or it cannot be locked. Waits a moment for a
  /// process that is just ending.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  struct Descriptor {
    int number;
    ~Descriptor();
  };
  Descriptor file_;
};

}  // namespace braid::apps
