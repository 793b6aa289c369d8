#include "read_file.h"

#include <braid/core/files/file_system.h>

namespace braid::apps {

std::string read_file(const std::filesystem::path& path) { return RegularFile(path.string(), path).contents(); }

}  // namespace braid::apps
