#include <braid/core/utf8.h>

#include <array>

#include <fmt/format.h>

namespace braid {

std::optional<char32_t> next_code_point(std::string_view text, std::size_t& at) {
  constexpr std::array<char32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};  // by the number of further bytes
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : 4;
  if (more == 4) return std::nullopt;
  char32_t point = more == 0 ? lead : lead & (0x3Fu >> more);
  for (const char next : text.substr(at + 1, more)) {
    if ((static_cast<unsigned char>(next) & 0xC0) != 0x80) return std::nullopt;
    point = point << 6 | (static_cast<unsigned char>(next) & 0x3Fu);
  }
  if (point < kLeast[more] || point > 0x10FFFF || point >> 11 == 0xD800 >> 11) return std::nullopt;
  at += 1 + more;
  return point;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();)
    if (!next_code_point(text, at)) return false;
  return true;
}

void append_utf8(std::string& text, char32_t point) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (point < 0x80) return put(point);
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  put((more == 1 ? 0xC0u : more == 2 ? 0xE0u : 0xF0u) | point >> (6 * more));
  for (int k = more - 1; k >= 0; --k) put(0x80u | (point >> (6 * k) & 0x3Fu));
}

std::string json_string(std::string_view text) {
  constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  std::string quoted = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t special = kSpecial.find(text[at]);
    const auto decoded = next_code_point(text, at);
    if (!decoded) ++at;
    const char32_t point = decoded.value_or(0xFFFD);
    if (special != std::string_view::npos)
      quoted += {'\\', kLetters[special]};
    else if (point >= 0x20 && point < 0x7F)
      quoted += static_cast<char>(point);
    else if (point < 0x10000)
      quoted += fmt::format("\\u{:04x}", std::uint32_t{point});
    else  // a pair of surrogates
      quoted += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0U + (point >> 10), 0xDC00U + (point & 0x3FF));
  }
  return quoted + '"';
}

std::string shortened(std::string text) {
  constexpr std::size_t kMost = 80;
  return text.size() <= kMost ? text : text.substr(0, kMost - 3) + "...";
}

std::string excerpt(std::string_view text) {
  const std::string quoted = json_string(text);
  return shortened(quoted.substr(1, quoted.size() - 2));
}

}  // namespace braid
