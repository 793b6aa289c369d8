#pragma once
#include <cstddef>
#include <filesystem>

/// Files by their numbers, as core/platform has them.
namespace braid::platform {

/// The longest name of a file, in bytes.
inline constexpr std::size_t kLongestName = 255;

int open_to_lock(const std::filesystem::path& path);  ///< or creates the file; refuses a link
/// Locks the file for this process and its forks; EWOULDBLOCK if another has locked it.
int try_to_lock(int file);

/// Whether the path leads to this open file.
bool is_at(int file, const std::filesystem::path& path);
/// Whether this process may create files in the folder.
bool may_write_into(const std::filesystem::path& folder);

}  // namespace braid::platform
