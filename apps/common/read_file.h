#pragma once
#include <filesystem>
#include <string>

namespace braid::examples {

/// All bytes of a regular file. Throws FileError naming it when it cannot be read to its end, or is something else,
/// such as a FIFO, which would be waited for.
std::string read_file(const std::filesystem::path& path);

}  // namespace braid::examples
