#pragma once
#include <filesystem>

namespace braid::examples {

/// Throws FileError or ValueError when `folder`, which --out names, cannot be made or written to; writes nothing.
void check_results_folder(const std::filesystem::path& folder);

/// Makes the folder that --out names, with its parents. Throws FileError when it cannot.
void make_results_folder(const std::filesystem::path& folder);

/// One process a folder: the lock is held while this, or a child process forked meanwhile, is alive. What a process
/// that was killed left half-written is removed.
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

}  // namespace braid::examples
