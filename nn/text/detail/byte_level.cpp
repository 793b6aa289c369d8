#include <braid/nn/text/detail/byte_level.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include <braid/core/utf8.h>

namespace braid::nn::detail {
namespace {

constexpr bool is_printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::int16_t kNone = -1;

/// By code point.
constexpr auto kBytes = [] {
  std::array<std::int16_t, 0x144> bytes{};
  bytes.fill(kNone);
  std::size_t other = 0x100;
  for (std::int16_t byte = 0; byte < 256; ++byte)
    bytes[is_printable(byte) ? static_cast<std::size_t>(byte) : other++] = byte;
  return bytes;
}();

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_code_point(text, at);
    if (!point || *point >= kBytes.size() || kBytes[*point] == kNone) return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[*point]));
  }
  return bytes;
}

}  // namespace braid::nn::detail
