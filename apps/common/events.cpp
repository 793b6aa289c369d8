#include "events.h"

#include <cstring>
#include <optional>
#include <string_view>

#include <braid/core/error.h>
#include <braid/nn/tensorboard.h>

#include "read_file.h"

namespace braid::apps {
namespace {

constexpr std::size_t kLength = sizeof(std::uint64_t), kChecksum = sizeof(std::uint32_t);

// How a field's value is stored: the last three bits of its tag. https://protobuf.dev/programming-guides/encoding
constexpr std::uint64_t kVarint = 0, kFixed64 = 1, kFixed32 = 5, kStepTag = 2 << 3 | kVarint;

/// Whether `stored` is the checksum of `bytes`.
bool is_checksum(std::string_view stored, std::string_view bytes) {
  const std::uint32_t checksum = nn::record_checksum(bytes);
  return stored == std::string_view(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
}

/// Moves past a varint at the front of `bytes`; nullopt if there is none.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    number |= static_cast<std::uint64_t>(byte & 0x7f) << 7 * i;
    if (byte > 0x7f) continue;
    bytes.remove_prefix(i + 1);
    return number;
  }
  return {};
}

/// The step of an event, 0 without one; nullopt if it is no sequence of fields.
std::optional<std::int64_t> step_of(std::string_view event) {
  std::uint64_t step = 0;
  while (!event.empty()) {
    const auto tag = take_varint(event);
    const std::uint64_t kind = tag.value_or(0) & 7;
    const std::optional<std::uint64_t> number =  // the value, or its length
        kind == kFixed64   ? 8
        : kind == kFixed32 ? 4
                           : take_varint(event);
    if (!tag || !number || kind == 3 || kind == 4 || kind > 5) return {};
    if (tag == kStepTag) step = *number;
    if (kind == kVarint) continue;
    if (*number > event.size()) return {};
    event.remove_prefix(*number);
  }
  return static_cast<std::int64_t>(step);
}

/// The next record of `bytes`; empty if they end within it, nullopt if it is damaged.
std::optional<std::string_view> next_record(std::string_view bytes) {
  if (bytes.size() < kLength + kChecksum) return "";
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLength);
  if (!is_checksum(bytes.substr(kLength, kChecksum), bytes.substr(0, kLength))) return {};
  if (length > bytes.size() || bytes.size() - length < kLength + 2 * kChecksum) return "";
  const std::string_view data = bytes.substr(kLength + kChecksum, length);
  if (!is_checksum(bytes.substr(kLength + kChecksum + length, kChecksum), data)) return {};
  return bytes.substr(0, kLength + 2 * kChecksum + length);
}

}  // namespace

std::string events_until(const std::filesystem::path& path, std::int64_t step) {
  const std::string all = read_file(path);
  std::string kept;
  for (std::string_view rest = all; !rest.empty();) {
    const std::optional<std::string_view> next = next_record(rest);
    std::optional<std::int64_t> at;
    if (next && !next->empty()) at = step_of(next->substr(kLength + kChecksum, next->size() - kLength - 2 * kChecksum));
    check<FileError>(next && (next->empty() || at), "{}: the event at byte {} is damaged", path.string(),
                     all.size() - rest.size());
    if (next->empty()) break;
    if (*at <= step) kept += *next;
    rest.remove_prefix(next->size());
  }
  return kept;
}

}  // namespace braid::apps
