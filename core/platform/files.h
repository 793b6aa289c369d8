#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

/// Files by their numbers. Calls fail as POSIX defines it, with -1 and errno, and allocate nothing. Programs that are
/// started do not inherit the files.
namespace braid::platform {

/// Repeats a call until no signal interrupts it.
auto uninterrupted(auto call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_to_read(const std::filesystem::path& path);    ///< without waiting for the writer of a FIFO
int open_to_sync(const std::filesystem::path& path);    ///< a file or folder
int open_to_append(const std::filesystem::path& path);  ///< or creates the file
int create(const std::filesystem::path& path);          ///< for writing; fails if the file is there, even as a link

std::ptrdiff_t read_at(std::uint64_t position, int file, void* out, std::size_t bytes);
std::ptrdiff_t write(int file, const void* data, std::size_t bytes);
int sync(int file);  ///< returns when the disk has the data
int close(int file);
int rename(const std::filesystem::path& from, const std::filesystem::path& to);  ///< replaces `to`
int remove(const std::filesystem::path& path);                                   ///< a file, not a folder

/// What tells one content of a file from another.
struct FileState {
  std::uint64_t bytes;
  std::int64_t written;  ///< when, in nanoseconds
};

/// Nothing if the file is a device, a FIFO or a folder.
std::optional<FileState> state_of_regular(int file);

/// Calls `use` with the name of each entry of the folder. Unlike std::filesystem::directory_iterator, it does not
/// terminate the process when out of memory.
int for_each_name(const std::filesystem::path& folder, const std::function<void(const char* name)>& use);

}  // namespace braid::platform
