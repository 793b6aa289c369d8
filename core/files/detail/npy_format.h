#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include <braid/core/tensor.h>

namespace braid::detail {

/// Where the bytes of an array come from, from the first on.
struct NpySource {
  std::string where;  ///< begins every message
  std::uint64_t size;
  std::function<void(void* out, std::uint64_t bytes)> read;
};

/// The array that the source holds, row-major. Throws FileError.
Tensor read_npy(const NpySource& source);

/// What stands before the row-major elements of a tensor: a header of format 1.0, padded to a multiple of 64 bytes.
std::string npy_header(const Tensor& tensor);

}  // namespace braid::detail
