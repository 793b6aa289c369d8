#pragma once
#include <string>
#include <string_view>

namespace braid::examples {

/// Makes UTF-8 of bytes that come in pieces, which may end amid a character. What is no character becomes U+FFFD, a
/// maximal subpart at a time as Unicode recommends.
class UTF8Stream {
 public:
  /// All characters that are complete with these bytes.
  std::string push(std::string_view bytes);
  /// U+FFFD where the bytes have ended amid a character.
  std::string finish();

 private:
  std::string held_;
};

/// All at once.
std::string valid_utf8(std::string_view bytes);

}  // namespace braid::examples
