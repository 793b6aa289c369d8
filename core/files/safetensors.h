#pragma once
#include <filesystem>
#include <map>
#include <string>

#include <braid/core/tensor.h>

namespace braid {

/// What a safetensors file holds: tensors by name and free text by key (`__metadata__`).
struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;         ///< by name
  std::map<std::string, std::string> metadata;   ///< by key
  std::map<std::string, std::string> skipped{};  ///< the dtypes, by name, of tensors that it holds besides
};

/// Reads a safetensors file: 8 bytes header length, a JSON header, the elements, little endian.
/// F32, F64, BF16 and I32 are read as they are; F16 becomes f32; BOOL and all other integers become i32, and values
/// that do not fit are an error. What braid does not compute with, F8_*, F6_*, F4 and C64, is listed as skipped.
/// Trusts nothing: the file is a regular one, names are unique, sizes match dtype and shape, and the tensors fill the
/// file to its end without gaps or overlaps. Throws FileError naming the file, the tensor, what was expected and what
/// was found, of which it quotes 80 characters at most.
SafetensorsFile load_safetensors(const std::filesystem::path& path);

/// Writes a safetensors file, atomically (write_file_atomically): a reader never sees half of it.
/// Names are sorted; larger elements lie before smaller ones, so that each tensor is aligned for readers that map it.
/// Throws ValueError for an undefined tensor or a name that is not UTF-8 or reserved, FileError when writing fails.
void save_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace braid
