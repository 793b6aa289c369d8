#pragma once
#include <filesystem>
#include <string>

namespace braid::apps {

/// All bytes of a regular file. Throws FileError naming it when it cannot be read to its end or is not a regular file;
/// reading a FIFO, for example, would block.
std::string read_file(const std::filesystem::path& path);

}  // namespace braid::apps
