#pragma once
#include "target.h"

/// libFuzzer's own mutations.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// Mutates a safetensors file: as bytes, or only its header, and then updates the first eight bytes, its length, since
/// few mutations of bytes keep that length valid.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::uint64_t length = 0;
  if (size >= sizeof(length)) std::memcpy(&length, data, sizeof(length));
  if (seed % 4 == 0 || size < sizeof(length) || length > size - sizeof(length))
    return LLVMFuzzerMutate(data, size, max_size);
  std::uint8_t* header = data + sizeof(length);
  const std::string elements(header + length, data + size);
  if (elements.size() + sizeof(length) >= max_size) return LLVMFuzzerMutate(data, size, max_size);
  length = LLVMFuzzerMutate(header, length, max_size - sizeof(length) - elements.size());
  std::memcpy(data, &length, sizeof(length));
  std::ranges::copy(elements, header + length);
  return sizeof(length) + length + elements.size();
}
