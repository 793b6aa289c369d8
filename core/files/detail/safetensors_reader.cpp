#include <braid/core/files/detail/safetensors_reader.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include <braid/core/detail/half.h>

namespace braid::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit
constexpr std::int64_t kChunk = 65536;             // elements, or bytes, that wait between file and tensor

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

/// The elements of the next tensor, each made from one of type Stored in the file.
template <class Stored, class T, class F>
Tensor converted(RegularFile& file, const StoredTensor& stored, DType dtype, F convert) {
  Tensor tensor(stored.shape, dtype);
  T* out = tensor.mutable_data<T>();
  std::vector<Stored> chunk(static_cast<std::size_t>(std::min(kChunk, tensor.numel())));
  for (std::int64_t rest = tensor.numel(); rest > 0;) {
    const std::int64_t count = std::min(rest, kChunk);
    file.read(chunk.data(), static_cast<std::uint64_t>(count) * sizeof(Stored));
    out = std::transform(chunk.begin(), chunk.begin() + count, out, convert);
    rest -= count;
  }
  return tensor;
}

template <class Stored>
Tensor integers(RegularFile& file, const StoredTensor& stored) {
  return converted<Stored, std::int32_t>(file, stored, DType::i32, [&](Stored value) {
    check<FileError>(std::in_range<std::int32_t>(value), "{}: tensor '{}': {} values must fit 32 bits but one is {}",
                     file.where(), excerpt(stored.name), facts(stored.type).name, value);
    return static_cast<std::int32_t>(value);
  });
}

Tensor as_it_is(RegularFile& file, const StoredTensor& stored, DType dtype) {
  Tensor tensor(stored.shape, dtype);
  file.read(tensor.mutable_bytes(), stored.end - stored.begin);
  return tensor;
}

Tensor skip(RegularFile& file, const StoredTensor& stored) {
  std::vector<std::byte> chunk(static_cast<std::size_t>(kChunk));
  for (std::uint64_t rest = stored.end - stored.begin; rest > 0;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(rest, chunk.size());
    file.read(chunk.data(), bytes);
    rest -= bytes;
  }
  return {};
}

Tensor read_tensor(RegularFile& file, const StoredTensor& stored) {
  switch (stored.type) {
    case StoredType::boolean:
      return converted<std::uint8_t, std::int32_t>(file, stored, DType::i32, [](std::uint8_t v) { return v != 0; });
    case StoredType::u8: return integers<std::uint8_t>(file, stored);
    case StoredType::i8: return integers<std::int8_t>(file, stored);
    case StoredType::u16: return integers<std::uint16_t>(file, stored);
    case StoredType::i16: return integers<std::int16_t>(file, stored);
    case StoredType::u32: return integers<std::uint32_t>(file, stored);
    case StoredType::u64: return integers<std::uint64_t>(file, stored);
    case StoredType::i64: return integers<std::int64_t>(file, stored);
    case StoredType::f16: return converted<std::uint16_t, float>(file, stored, DType::f32, from_f16);
    default: break;
  }
  const std::optional<DType> dtype = facts(stored.type).dtype;
  return dtype ? as_it_is(file, stored, *dtype) : skip(file, stored);
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::string where, const std::filesystem::path& path)
    : file_(std::move(where), path), header_(read_header(file_)) {}

Tensor SafetensorsReader::next() { return read_tensor(file_, header_.tensors.at(next_++)); }

}  // namespace braid::detail
