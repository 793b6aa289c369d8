#include "token_file.h"

#include <algorithm>
#include <array>

#include <braid/core/error.h>

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

TokenFile::TokenFile(const std::filesystem::path& path)
    : file_(std::make_shared<const RegularFile>(path.string(), path)) {
  const std::uint64_t length = file_->size();
  std::array<std::int32_t, 3> header{};  // magic, version, count
  file_->read_at(0, header.data(), std::min<std::uint64_t>(sizeof(header), length));
  const auto format = std::ranges::find(kFormats, header[0], &Format::magic);
  const bool has_header = format != kFormats.end();
  if (has_header) {
    check<FileError>(header[1] == format->version, "{}: version {} of llm.c's token files must be {}", path.string(),
                     header[1], format->version);
    wide_ = format->wide;
    header_ = kHeaderBytes;
  }
  const std::size_t bytes = wide_ ? sizeof(std::uint32_t) : sizeof(std::uint16_t);
  size_ = has_header ? header[2] : static_cast<std::int64_t>(length / bytes);
  const std::uint64_t expected =
      static_cast<std::uint64_t>(header_) + static_cast<std::uint64_t>(std::max<std::int64_t>(size_, 0)) * bytes;
  check<FileError>(length == expected, "{}: {} tokens must take {} bytes but the file has {}", path.string(), size_,
                   expected, length);
  check<FileError>(size_ > 0, "{}: has no tokens", path.string());
}

template <class Id>
std::vector<Id> TokenFile::read(std::int64_t start, std::int64_t count) const {
  std::vector<Id> ids(static_cast<std::size_t>(count));
  const auto bytes = static_cast<std::int64_t>(sizeof(Id));
  file_->read_at(static_cast<std::uint64_t>(header_ + start * bytes), ids.data(), ids.size() * sizeof(Id));
  file_->check_unchanged();
  return ids;
}

std::int64_t TokenFile::highest_id() const {
  constexpr std::int64_t kPart = std::int64_t{1} << 18;
  std::int64_t highest = 0;
  const auto look_at = [&](const auto& ids) { highest = std::max<std::int64_t>(highest, std::ranges::max(ids)); };
  for (std::int64_t start = 0; start < size_; start += kPart) {
    const std::int64_t count = std::min(kPart, size_ - start);
    wide_ ? look_at(read<std::uint32_t>(start, count)) : look_at(read<std::uint16_t>(start, count));
  }
  return highest;
}

std::int32_t* TokenFile::copy(std::int64_t start, std::int64_t count, std::int32_t* out) const {
  const auto copied = [&](const auto& ids) {
    return std::ranges::transform(ids, out, [](auto id) { return static_cast<std::int32_t>(id); }).out;
  };
  return wide_ ? copied(read<std::uint32_t>(start, count)) : copied(read<std::uint16_t>(start, count));
}

}  // namespace braid::apps
