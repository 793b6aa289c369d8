#include <braid/core/files/detail/safetensors_reader.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace braid::detail {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit

SafetensorsHeader read_header(RegularFile& file) {
  check<FileError>(file.size() >= 8, "{}: expected 8 bytes of header length but the file has {} bytes", file.where(),
                   file.size());
  std::uint64_t length = 0;
  file.read(&length, sizeof(length));
  const std::uint64_t most = std::min(file.size() - 8, kMaxHeader);
  check<FileError>(length <= most, "{}: the header length must be at most {} in a file of {} bytes but is {}",
                   file.where(), most, file.size(), length);
  std::string text(length, ' ');
  file.read(text.data(), length);
  return parse_safetensors_header(file.where(), text, file.size() - 8 - length);
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::string where, const std::filesystem::path& path)
    : file_(std::move(where), path), header_(read_header(file_)) {}

Tensor SafetensorsReader::next() {
  const auto& [name, type, shape, begin, end] = header_.tensors.at(next_++);
  if (!facts(type).dtype) {
    file_.skip(end - begin);
    return {};
  }
  const std::string where = fmt::format("{}: tensor '{}'", file_.where(), excerpt(name));
  return read_stored(file_, type, shape, fmt::format("{}: {} values", where, facts(type).name));
}

}  // namespace braid::detail
