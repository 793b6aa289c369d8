#include "read_file.h"

#include <braid/core/files/file_system.h>

namespace braid::apps {

std::string read_file(const std::filesystem::path& path) {
  RegularFile file(path.string(), path);
  std::string content(file.size(), '\0');
  file.read(content.data(), content.size());
  return content;
}

}  // namespace braid::apps
