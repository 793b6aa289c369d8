#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include <braid/core/tensor.h>

namespace braid::detail {

/// The bytes of a .npy file, from the first to the last.
struct NpySource {
  std::string where;  ///< the start of messages
  std::uint64_t size;
  std::function<void(void* out, std::uint64_t bytes)> read;
};

/// Reads the array, row-major. Throws FileError.
Tensor read_npy(const NpySource& source);

/// The bytes of a file before the row-major elements: a header of format 1.0, padded to a multiple of 64 bytes. Throws
/// DTypeError for bf16.
std::string npy_header(const Tensor& tensor);

}  // namespace braid::detail
