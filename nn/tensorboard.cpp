#include <braid/nn/tensorboard.h>

#include <chrono>

namespace braid::nn {
namespace {

namespace fs = std::filesystem;

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

std::string_view bytes_of(const auto& number) { return {reinterpret_cast<const char*>(&number), sizeof(number)}; }

/// A field of bytes: a string or a message.
std::string field(std::uint64_t number, std::string_view bytes) {
  return varint(key(number, kBytes)).append(varint(bytes.size())).append(bytes);
}

std::string wall_time_field(double wall_time) { return varint(key(1, kFixed64)).append(bytes_of(wall_time)); }

std::string record(std::string_view event) {
  const std::uint64_t length = event.size();
  const std::uint32_t before = record_checksum(bytes_of(length)), behind = record_checksum(event);
  return std::string(bytes_of(length)).append(bytes_of(before)).append(event).append(bytes_of(behind));
}

}  // namespace

std::uint32_t record_checksum(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

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
  std::error_code unknown;  // of what is no regular file
  if (fs::file_size(path, unknown) > 0 && !unknown) return;
  const std::string version = record(wall_time_field(now()) + field(3, "brain.Event:2"));
  file_.require(file_.write(version.data(), version.size()), "cannot be written");
}

void EventFile::append(std::int64_t step, const Scalars& scalars) {
  const std::string bytes = event_record(step, scalars, now());
  file_.require(file_.write(bytes.data(), bytes.size()), "cannot be written");
}

}  // namespace braid::nn
