#include <braid/core/files/detail/safetensors_reader.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

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

Tensor skip(RegularFile& file, std::uint64_t bytes) {
  std::vector<std::byte> chunk(65536);
  for (std::uint64_t count = 0; bytes > 0; bytes -= count) {
    count = std::min<std::uint64_t>(bytes, chunk.size());
    file.read(chunk.data(), count);
  }
  return {};
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::string where, const std::filesystem::path& path)
    : file_(std::move(where), path), header_(read_header(file_)) {}

Tensor SafetensorsReader::next() {
  const auto& [name, type, shape, begin, end] = header_.tensors.at(next_++);
  if (!facts(type).dtype) return skip(file_, end - begin);
  const std::string where = fmt::format("{}: tensor '{}'", file_.where(), excerpt(name));
  return read_stored(file_, type, shape, fmt::format("{}: {} values", where, facts(type).name));
}

}  // namespace braid::detail
