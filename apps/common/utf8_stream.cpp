#include "utf8_stream.h"

#include <cstddef>

namespace braid::apps {
namespace {

constexpr const char* kReplacement = "\uFFFD";

/// At the start of a text: the bytes of a character that are there, and the bytes that it needs; 0 if none starts.
struct Start {
  std::size_t there, needed;
};

Start start_of(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(0);
  const std::size_t needed = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  // The second byte excludes overlong forms, surrogates and code points above U+10FFFF: table 3-7 of the Unicode
  // Standard.
  unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  std::size_t there = 1;
  for (; there < needed && there < text.size() && byte(there) >= least && byte(there) <= most; ++there)
    least = 0x80, most = 0xBF;
  return {there, needed};
}

}  // namespace

std::string UTF8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const auto [there, needed] = start_of(rest);
    if (there < needed && there == rest.size()) break;
    text += there == needed ? rest.substr(0, there) : kReplacement;
    rest.remove_prefix(there);
  }
  held_ = std::string(rest);
  return text;
}

std::string UTF8Stream::finish() {
  const bool amid = !held_.empty();
  held_.clear();
  return amid ? kReplacement : "";
}

std::string valid_utf8(std::string_view bytes) {
  UTF8Stream stream;
  const std::string text = stream.push(bytes);
  return text + stream.finish();
}

}  // namespace braid::apps
