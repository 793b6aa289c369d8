#include <braid/core/safetensors.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <ostream>
#include <utility>
#include <vector>

#include <braid/core/atomic_file.h>
#include <braid/core/detail/regular_file.h>
#include <braid/core/detail/safetensors_header.h>

namespace braid {
namespace {

using detail::RegularFile;
using detail::SafetensorsHeader;
using detail::StoredTensor;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

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
  return detail::parse_safetensors_header(file.where(), text, file.size() - 8 - length);
}

Tensor read_long(RegularFile& file, const StoredTensor& stored) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(stored.shape.numel()));
  file.read(values.data(), stored.end - stored.begin);
  Tensor tensor(stored.shape, DType::i32);
  std::ranges::transform(values, tensor.mutable_data<std::int32_t>(), [&](std::int64_t value) {
    check<FileError>(std::in_range<std::int32_t>(value), "{}: tensor '{}': I64 values must fit 32 bits but one is {}",
                     file.where(), detail::excerpt(stored.name), value);
    return static_cast<std::int32_t>(value);
  });
  return tensor;
}

/// The next tensor of the file.
Tensor read_tensor(RegularFile& file, const StoredTensor& stored) {
  if (stored.item != size_of(stored.dtype)) return read_long(file, stored);
  Tensor tensor(stored.shape, stored.dtype);
  file.read(tensor.mutable_bytes(), stored.end - stored.begin);
  return tensor;
}

/// Lays tensors out: 8-byte elements first, then by name.
SafetensorsHeader lay_out(const std::map<std::string, Tensor>& tensors) {
  SafetensorsHeader header;
  for (const auto& [name, tensor] : tensors) {
    check_value(tensor.defined(), "save_safetensors: tensor '{}' is undefined", name);
    header.tensors.push_back({name, tensor.dtype(), size_of(tensor.dtype()), tensor.shape(), 0, 0});
  }
  std::ranges::stable_sort(header.tensors, std::greater(), &StoredTensor::item);
  std::uint64_t end = 0;
  for (StoredTensor& stored : header.tensors) {
    stored.begin = end;
    stored.end = end += static_cast<std::uint64_t>(stored.shape.numel()) * stored.item;
  }
  return header;
}

}  // namespace

SafetensorsFile load_safetensors(const fs::path& path) {
  RegularFile source("load_safetensors: " + path.string(), path);
  SafetensorsHeader header = read_header(source);
  SafetensorsFile file;
  for (const StoredTensor& stored : header.tensors) file.tensors.emplace(stored.name, read_tensor(source, stored));
  file.metadata = std::move(header.metadata);
  return file;
}

void save_safetensors(const fs::path& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header = lay_out(tensors);
  header.metadata = metadata;
  const std::string text = detail::format_safetensors_header(header);
  const std::uint64_t length = text.size();
  write_file_atomically(path, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(&length), sizeof(length));
    out << text;
    for (const StoredTensor& stored : header.tensors) {
      const Tensor tensor = tensors.at(stored.name).contiguous();
      out.write(reinterpret_cast<const char*>(tensor.bytes()), static_cast<std::streamsize>(stored.end - stored.begin));
    }
  });
}

}  // namespace braid
