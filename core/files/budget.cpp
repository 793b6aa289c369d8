#include <braid/core/files/budget.h>

namespace braid {

void check_nesting(const std::string& where, std::string_view json) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      at += c == '\\' ? 1 : 0;  // the character after it ends no string
      continue;
    }
    check<FileError>(c != '\0', "{}: must be JSON but has a byte of 0 at byte {}", where, at);
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    check<FileError>(depth <= kMaxNesting, "{}: must nest at most {} deep but does so deeper at byte {}", where,
                     kMaxNesting, at);
  }
}

}  // namespace braid
