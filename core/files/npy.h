#pragma once
#include <filesystem>
#include <map>
#include <string>

#include <braid/core/tensor.h>

namespace braid {

/// Reads an array that numpy.save wrote: format 1.0, 2.0 or 3.0, little endian, in C or Fortran order.
/// f4, f8 and i4 are read as they are; f2 becomes f32; booleans and other integers become i32, and values that do not
/// fit are an error. The result is row-major, in its shape. All of the file is checked: the array has to fill it.
/// Throws UnreadableFile or, for a damaged one, FileError naming the file, what was expected and what was found.
Tensor load_npy(const std::filesystem::path& path);

/// Writes a file for numpy.load, of any shape, in C order, by write_file_atomically. Throws ValueError for an undefined
/// tensor, DTypeError for bf16, which NumPy does not have, FileError if writing fails.
void save_npy(const std::filesystem::path& path, const Tensor& tensor);

/// Reads the arrays that numpy.savez or numpy.savez_compressed wrote, under their names: a zip of .npy files, stored or
/// deflated. Throws as load_npy() does, naming the array too, also when the arrays take more bytes than the file has.
std::map<std::string, Tensor> load_npz(const std::filesystem::path& path);

/// Options of save_npz.
struct SaveNpz {
  bool compressed = false;  ///< deflated, as numpy.savez_compressed does
};

/// Writes a file that numpy.load reads as a mapping, by write_file_atomically; equal tensors give equal bytes. Throws
/// ValueError for an undefined tensor or a name that is empty or not UTF-8, DTypeError for bf16, FileError if writing
/// fails.
void save_npz(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
              const SaveNpz& options = {});

}  // namespace braid
