#pragma once
#include <string>
#include <string_view>

namespace braid::apps {

/// Decodes UTF-8 in pieces, which may end inside a character. Each maximal subpart of an invalid sequence becomes one
/// U+FFFD, as Unicode recommends.
class UTF8Stream {
 public:
  /// The characters that these bytes complete.
  std::string push(std::string_view bytes);
  /// U+FFFD if the bytes ended inside a character, else nothing.
  std::string finish();

 private:
  std::string held_;
};

/// Decodes a whole text at once.
std::string valid_utf8(std::string_view bytes);

}  // namespace braid::apps
