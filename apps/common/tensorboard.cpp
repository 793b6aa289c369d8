#include "tensorboard.h"

#include <fcntl.h>
#include <isa-l/crc.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include <braid/core/error.h>

#include "event.pb.h"
#include "read_file.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLength = sizeof(std::uint64_t), kChecksum = sizeof(std::uint32_t);

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// CRC-32C, masked as the format requires, since the data around it has checksums too.
std::uint32_t checksum(std::string_view bytes) {
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  const std::uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~0u);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

template <class T>
std::string_view bytes_of(const T& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

std::string record(const proto::Event& event) {
  const std::string data = event.SerializeAsString();
  const std::uint64_t length = data.size();
  const std::uint32_t before = checksum(bytes_of(length)), behind = checksum(data);
  return std::string(bytes_of(length)).append(bytes_of(before)).append(data).append(bytes_of(behind));
}

/// The content of the first record of every file.
std::string version_record() {
  proto::Event event;
  event.set_wall_time(now());
  event.set_file_version("brain.Event:2");
  return record(event);
}

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T number{};
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

/// The next record of `bytes`; empty if they end within it, nullopt if it is damaged.
std::optional<std::string_view> next_record(std::string_view bytes) {
  if (bytes.size() < kLength + kChecksum) return "";
  const auto length = number_at<std::uint64_t>(bytes, 0);
  if (number_at<std::uint32_t>(bytes, kLength) != checksum(bytes.substr(0, kLength))) return {};
  if (length > bytes.size() || bytes.size() - length < kLength + 2 * kChecksum) return "";
  const std::string_view data = bytes.substr(kLength + kChecksum, length);
  if (number_at<std::uint32_t>(bytes, kLength + kChecksum + length) != checksum(data)) return {};
  return bytes.substr(0, kLength + 2 * kChecksum + length);
}

}  // namespace

std::string event_record(std::int64_t step, const Scalars& scalars, double wall_time) {
  proto::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (const auto& [tag, number] : scalars) {
    proto::Summary::Value& value = *event.mutable_summary()->add_value();
    value.set_tag(tag);
    value.set_simple_value(static_cast<float>(number));
  }
  return record(event);
}

EventFile::EventFile(const fs::path& path)
    : file_(path.string(), path.c_str(), O_WRONLY | O_CREAT | O_APPEND, "cannot be written") {
  if (fs::file_size(path) > 0) return;
  const std::string version = version_record();
  file_.require(file_.write(version.data(), version.size()), "cannot be written");
}

void EventFile::append(std::int64_t step, const Scalars& scalars) {
  const std::string bytes = event_record(step, scalars, now());
  file_.require(file_.write(bytes.data(), bytes.size()), "cannot be written");
}

std::string events_until(const fs::path& path, std::int64_t step) {
  const std::string all = read_file(path);
  std::string kept;
  for (std::string_view rest = all; !rest.empty();) {
    const std::optional<std::string_view> next = next_record(rest);
    proto::Event event;
    const bool whole =
        next && (next->empty() || event.ParseFromArray(next->data() + kLength + kChecksum,
                                                       static_cast<int>(next->size() - kLength - 2 * kChecksum)));
    check<FileError>(whole, "{}: the event at byte {} is damaged", path.string(), all.size() - rest.size());
    if (next->empty()) break;
    if (event.step() <= step) kept += *next;
    rest.remove_prefix(next->size());
  }
  return kept;
}

}  // namespace braid::apps
