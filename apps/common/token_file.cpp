#include "token_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <braid/core/error.h>
#include <braid/core/platform/files.h>

namespace braid::apps {
namespace {

constexpr std::size_t kHeaderBytes = 256 * sizeof(std::int32_t);

/// The formats that llm.c's data_common.py writes.
struct Format {
  std::int32_t magic, version;
  bool wide;
};
constexpr std::array<Format, 2> kFormats{{{20240520, 1, false}, {20240801, 7, true}}};

}  // namespace

struct TokenFile::Mapping {
  explicit Mapping(const std::filesystem::path& path) {
    const std::string where = path.string();
    const int file = platform::open_to_read(path);
    check<FileError>(file >= 0, "{}: cannot be opened: {}", where, std::strerror(errno));
    const std::optional<std::uint64_t> bytes = platform::size_of_regular(file);
    size = static_cast<std::size_t>(bytes.value_or(0));
    start = size > 0 ? static_cast<const char*>(platform::map(file, size)) : nullptr;
    const int error = errno;
    platform::close(file);
    check<FileError>(bytes.has_value(), "{}: must be a regular file but is something else", where);
    check<FileError>(size > 0, "{}: has no tokens", where);
    check<FileError>(start != nullptr, "{}: cannot be mapped into memory: {}", where, std::strerror(error));
  }
  ~Mapping() { platform::unmap(start, size); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  template <class T>
  std::span<const T> ids(std::int64_t header) const {
    return {reinterpret_cast<const T*>(start + header), (size - static_cast<std::size_t>(header)) / sizeof(T)};
  }

  const char* start = nullptr;
  std::size_t size = 0;
};

TokenFile::TokenFile(const std::filesystem::path& path) : mapping_(std::make_shared<Mapping>(path)) {
  std::array<std::int32_t, 3> header{};  // magic, version, count
  std::memcpy(header.data(), mapping_->start, std::min(sizeof(header), mapping_->size));
  const auto format = std::ranges::find(kFormats, header[0], &Format::magic);
  const bool has_header = format != kFormats.end();
  const std::size_t length = mapping_->size;
  if (has_header) {
    check<FileError>(header[1] == format->version, "{}: version {} of llm.c's token files must be {}", path.string(),
                     header[1], format->version);
    wide_ = format->wide;
    header_ = kHeaderBytes;
  }
  const std::size_t bytes = wide_ ? sizeof(std::uint32_t) : sizeof(std::uint16_t);
  size_ = has_header ? header[2] : static_cast<std::int64_t>(length / bytes);
  const std::size_t expected =
      static_cast<std::size_t>(header_) + static_cast<std::size_t>(std::max<std::int64_t>(size_, 0)) * bytes;
  check<FileError>(length == expected, "{}: {} tokens must take {} bytes but the file has {}", path.string(), size_,
                   expected, length);
  check<FileError>(size_ > 0, "{}: has no tokens", path.string());
}

std::int64_t TokenFile::highest_id() const {
  if (wide_) return std::ranges::max(mapping_->ids<std::uint32_t>(header_));
  return std::ranges::max(mapping_->ids<std::uint16_t>(header_));
}

std::int32_t* TokenFile::copy(std::int64_t start, std::int64_t count, std::int32_t* out) const {
  const auto copied = [&](auto ids) {
    return std::ranges::transform(ids.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(count)), out,
                                  [](auto id) { return static_cast<std::int32_t>(id); })
        .out;
  };
  return wide_ ? copied(mapping_->ids<std::uint32_t>(header_)) : copied(mapping_->ids<std::uint16_t>(header_));
}

std::string_view TokenFile::bytes() const { return {mapping_->start, mapping_->size}; }

}  // namespace braid::apps
