#include <braid/core/files/safetensors.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <ostream>
#include <utility>

#include <braid/core/files/atomic_file.h>
#include <braid/core/files/detail/safetensors_reader.h>

namespace braid {
namespace {

using detail::SafetensorsHeader, detail::StoredTensor, detail::StoredType;
namespace fs = std::filesystem;

StoredType stored_type(DType dtype) {
  constexpr std::array kTypes{StoredType::f32, StoredType::f64, StoredType::i32, StoredType::bf16};  // as DType's
  return kTypes[static_cast<std::size_t>(dtype)];
}

std::uint64_t bits(const StoredTensor& stored) { return detail::facts(stored.type).bits; }

/// The header for these tensors: the largest elements first, then by name.
SafetensorsHeader lay_out(const std::map<std::string, Tensor>& tensors) {
  SafetensorsHeader header;
  for (const auto& [name, tensor] : tensors) {
    check_value(tensor.defined(), "save_safetensors: tensor '{}' is undefined", name);
    header.tensors.push_back({name, stored_type(tensor.dtype()), tensor.shape(), 0, 0});
  }
  std::ranges::stable_sort(header.tensors, std::greater(), bits);
  std::uint64_t end = 0;
  for (StoredTensor& stored : header.tensors) {
    stored.begin = end;
    stored.end = end += static_cast<std::uint64_t>(stored.shape.numel()) * bits(stored) / 8;
  }
  return header;
}

}  // namespace

SafetensorsFile load_safetensors(const fs::path& path) {
  detail::SafetensorsReader reader("load_safetensors: " + path.string(), path);
  SafetensorsFile file;
  for (const StoredTensor& stored : reader.header().tensors) {
    Tensor tensor = reader.next();
    if (tensor.defined())
      file.tensors.emplace(stored.name, std::move(tensor));
    else
      file.skipped.emplace(stored.name, detail::facts(stored.type).name);
  }
  file.metadata = reader.header().metadata;
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
    for (const StoredTensor& stored : header.tensors)
      out << detail::element_bytes(tensors.at(stored.name).contiguous());
  });
}

}  // namespace braid
