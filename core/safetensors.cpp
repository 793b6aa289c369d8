#include <braid/core/safetensors.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include <braid/core/atomic_file.h>
#include <braid/core/detail/safetensors_header.h>

namespace braid {
namespace {

using detail::SafetensorsHeader;
using detail::StoredTensor;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit

void read_bytes(const std::string& where, std::ifstream& in, void* out, std::uint64_t bytes) {
  in.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes));
  check<FileError>(in.good(), "{}: expected {} more bytes but reading failed", where, bytes);
}

SafetensorsHeader read_header(const std::string& where, std::ifstream& in, std::uint64_t file_bytes) {
  check<FileError>(file_bytes >= 8, "{}: expected 8 bytes of header length but the file has {} bytes", where,
                   file_bytes);
  std::uint64_t length = 0;
  read_bytes(where, in, &length, sizeof(length));
  const std::uint64_t most = std::min(file_bytes - 8, kMaxHeader);
  check<FileError>(length <= most, "{}: the header length must be at most {} in a file of {} bytes but is {}", where,
                   most, file_bytes, length);
  std::string text(length, ' ');
  read_bytes(where, in, text.data(), length);
  return detail::parse_safetensors_header(where, text, file_bytes - 8 - length);
}

Tensor read_long(const std::string& where, std::ifstream& in, const StoredTensor& stored) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(stored.shape.numel()));
  read_bytes(where, in, values.data(), stored.end - stored.begin);
  Tensor tensor(stored.shape, DType::i32);
  std::ranges::transform(values, tensor.mutable_data<std::int32_t>(), [&](std::int64_t value) {
    check<FileError>(std::in_range<std::int32_t>(value), "{}: tensor '{}': I64 values must fit 32 bits but one is {}",
                     where, stored.name, value);
    return static_cast<std::int32_t>(value);
  });
  return tensor;
}

/// The next tensor of the file.
Tensor read_tensor(const std::string& where, std::ifstream& in, const StoredTensor& stored) {
  if (stored.item != size_of(stored.dtype)) return read_long(where, in, stored);
  Tensor tensor(stored.shape, stored.dtype);
  read_bytes(where, in, tensor.mutable_bytes(), stored.end - stored.begin);
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
  const std::string where = "load_safetensors: " + path.string();
  std::ifstream in(path, std::ios::binary);
  std::error_code ignored;
  check<FileError>(in.good() && fs::is_regular_file(path, ignored), "{}: must be a file that can be read", where);
  SafetensorsHeader header = read_header(where, in, fs::file_size(path));
  SafetensorsFile file;
  for (const StoredTensor& stored : header.tensors) file.tensors[stored.name] = read_tensor(where, in, stored);
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
