#include <braid/nn/tensorboard.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include <braid/core/error.h>

namespace braid::nn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLength = sizeof(std::uint64_t), kChecksum = sizeof(std::uint32_t);

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// What of TensorBoard's messages a scalar needs, with their field numbers:
//   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
//   Summary { repeated Value value = 1; }
//   Value   { string tag = 1; float simple_value = 2; }
// https://github.com/tensorflow/tensorboard/tree/master/tensorboard/compat/proto
//
// A field is a varint of 8 * number + kind, then its value. https://protobuf.dev/programming-guides/encoding
enum Kind : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr std::uint64_t key(std::uint64_t field, Kind kind) { return field << 3 | kind; }

/// Seven bits a byte, the lowest first; all bytes but the last have the highest bit.
std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number > 0x7f; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes += static_cast<char>(number);
}

template <class T>
std::string_view bytes_of(const T& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

/// A field of bytes: a string or a message.
std::string field(std::uint64_t number, std::string_view bytes) {
  return varint(key(number, kBytes)).append(varint(bytes.size())).append(bytes);
}

std::string wall_time_field(double wall_time) { return varint(key(1, kFixed64)).append(bytes_of(wall_time)); }

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
    if (tag == key(2, kVarint)) step = *number;
    if (kind == kVarint) continue;
    if (*number > event.size()) return {};
    event.remove_prefix(*number);
  }
  return static_cast<std::int64_t>(step);
}

constexpr auto kChecksumsOfBytes = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    table[byte] = byte;
    for (int bit = 0; bit < 8; ++bit) table[byte] = table[byte] >> 1 ^ (table[byte] & 1 ? 0x82f63b78u : 0);
  }
  return table;
}();

/// CRC-32C, masked as the format requires, since the data around it has checksums too.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = crc >> 8 ^ kChecksumsOfBytes[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::string record(std::string_view event) {
  const std::uint64_t length = event.size();
  const std::uint32_t before = checksum(bytes_of(length)), behind = checksum(event);
  return std::string(bytes_of(length)).append(bytes_of(before)).append(event).append(bytes_of(behind));
}

/// The next record of `bytes`; empty if they end within it, nullopt if it is damaged.
std::optional<std::string_view> next_record(std::string_view bytes) {
  if (bytes.size() < kLength + kChecksum) return "";
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLength);
  const std::uint32_t before = checksum(bytes.substr(0, kLength));
  if (bytes.substr(kLength, kChecksum) != bytes_of(before)) return {};
  if (length > bytes.size() || bytes.size() - length < kLength + 2 * kChecksum) return "";
  const std::string_view data = bytes.substr(kLength + kChecksum, length);
  const std::uint32_t behind = checksum(data);
  if (bytes.substr(kLength + kChecksum + length, kChecksum) != bytes_of(behind)) return {};
  return bytes.substr(0, kLength + 2 * kChecksum + length);
}

}  // namespace

std::string event_record(std::int64_t step, const Scalars& scalars, double wall_time) {
  std::string event = wall_time_field(wall_time), summary;
  if (step != 0) event.append(varint(key(2, kVarint))).append(varint(static_cast<std::uint64_t>(step)));
  for (const auto& [tag, number] : scalars) {
    const auto value = static_cast<float>(number);
    summary += field(1, field(1, tag).append(varint(key(2, kFixed32))).append(bytes_of(value)));
  }
  if (!summary.empty()) event += field(5, summary);
  return record(event);
}

EventFile::EventFile(const fs::path& path) : file_(path.string(), path, OpenFor::appending, "cannot be written") {
  if (fs::file_size(path) > 0) return;
  const std::string version = record(wall_time_field(now()) + field(3, "brain.Event:2"));
  file_.require(file_.write(version.data(), version.size()), "cannot be written");
}

void EventFile::append(std::int64_t step, const Scalars& scalars) {
  const std::string bytes = event_record(step, scalars, now());
  file_.require(file_.write(bytes.data(), bytes.size()), "cannot be written");
}

std::string events_until(const fs::path& path, std::int64_t step) {
  const std::string all = RegularFile(path.string(), path).contents();
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

}  // namespace braid::nn
