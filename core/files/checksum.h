#pragma once
#include <map>
#include <string>
#include <string_view>

#include <braid/core/tensor.h>

namespace braid {

class RegularFile;

/// The 128-bit XXH3 hash as 32 hexadecimal digits: detects damage, not forgery. https://xxhash.com
std::string checksum(std::string_view bytes);

/// Of the elements in row-major order, whatever shape x has.
std::string checksum(const Tensor& x);

/// Of the bytes of a file, which need not fit into memory. Throws as RegularFile::read_at() does.
std::string checksum(const RegularFile& file);

/// The same for the contents of a safetensors file: names, dtypes, shapes, elements and metadata.
std::string checksum(const std::map<std::string, Tensor>& tensors, const std::map<std::string, std::string>& metadata);

namespace detail {
/// Equal in this process for tensors of equal bits: the checksum, or without xxHash a hash of the standard library's.
std::string fingerprint(const Tensor& x);
}  // namespace detail

}  // namespace braid
