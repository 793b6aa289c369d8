#include <braid/core/files/detail/safetensors_reader.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <braid/core/files/detail/elements.h>
#include <braid/core/utf8.h>

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

template <class Stored>
Tensor integers(RegularFile& file, const StoredTensor& stored) {
  const std::string where = fmt::format("{}: tensor '{}'", file.where(), excerpt(stored.name));
  return read_integers<Stored>(file, stored.shape, fmt::format("{}: {} values", where, facts(stored.type).name));
}

Tensor read_tensor(RegularFile& file, const StoredTensor& stored) {
  switch (stored.type) {
    case StoredType::boolean: return read_booleans(file, stored.shape);
    case StoredType::u8: return integers<std::uint8_t>(file, stored);
    case StoredType::i8: return integers<std::int8_t>(file, stored);
    case StoredType::u16: return integers<std::uint16_t>(file, stored);
    case StoredType::i16: return integers<std::int16_t>(file, stored);
    case StoredType::u32: return integers<std::uint32_t>(file, stored);
    case StoredType::u64: return integers<std::uint64_t>(file, stored);
    case StoredType::i64: return integers<std::int64_t>(file, stored);
    case StoredType::f16: return read_f16(file, stored.shape);
    default: break;
  }
  const std::optional<DType> dtype = facts(stored.type).dtype;
  return dtype ? read_elements(file, stored.shape, *dtype) : skip(file, stored.end - stored.begin);
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::string where, const std::filesystem::path& path)
    : file_(std::move(where), path), header_(read_header(file_)) {}

Tensor SafetensorsReader::next() { return read_tensor(file_, header_.tensors.at(next_++)); }

}  // namespace braid::detail
