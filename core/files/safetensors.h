#pragma once
#include <filesystem>
#include <map>
#include <string>

#include <braid/core/tensor.h>

namespace braid {

/// The contents of a safetensors file: tensors by name and text by key (`__metadata__`).
struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;         ///< by name
  std::map<std::string, std::string> metadata;   ///< by key
  std::map<std::string, std::string> skipped{};  ///< the dtypes, by name, of tensors that were not read
};

/// Reads a safetensors file: 8 bytes header length, a JSON header, the elements, little endian.
/// F32, F64, BF16 and I32 are read as they are; F16 becomes f32; BOOL and all other integers become i32, and values
/// that do not fit are an error. Dtypes that braid does not support, F8_*, F6_*, F4 and C64, are listed as skipped.
/// Everything is checked: it is a regular file, names are unique, sizes match dtype and shape, and the tensors fill the
/// file to its end without gaps or overlaps. Throws UnreadableFile or, for a damaged one, FileError naming the file,
/// the tensor, what was expected and what was found, quoted up to 80 characters.
SafetensorsFile load_safetensors(const std::filesystem::path& path);

/// Writes a safetensors file by write_file_atomically. Names are sorted; dtypes with larger elements come first, so
/// that each tensor is aligned for readers that map the file. Throws ValueError for an undefined tensor or a name that
/// is not UTF-8 or reserved, FileError if writing fails.
void save_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace braid
