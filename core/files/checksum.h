#pragma once
#include <map>
#include <string>
#include <string_view>

#include <braid/core/tensor.h>

namespace braid {

/// XXH3 of 128 bits as 32 hexadecimal digits: finds damage, not forgery. https://xxhash.com
std::string checksum(std::string_view bytes);

/// The same of what a safetensors file holds: names, dtypes, shapes, elements and metadata.
std::string checksum(const std::map<std::string, Tensor>& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace braid
