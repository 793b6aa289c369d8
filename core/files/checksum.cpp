#include <braid/core/files/checksum.h>

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include <fmt/format.h>

#include <braid/core/files/file_system.h>

namespace braid {
namespace {

std::string hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

/// The checksum of bytes that come in parts.
class Sum {
 public:
  Sum() {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }

  void add(const void* data, std::uint64_t bytes) {
    if (bytes > 0) XXH3_128bits_update(state_.get(), data, bytes);
  }
  /// Preceded by its length, so that no two lists of pieces give the same bytes.
  void add_piece(std::string_view piece) {
    const std::uint64_t bytes = piece.size();
    add(&bytes, sizeof(bytes));
    add(piece.data(), bytes);
  }
  std::string hex() const { return braid::hex(XXH3_128bits_digest(state_.get())); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_{XXH3_createState(), &XXH3_freeState};
};

}  // namespace

std::string checksum(std::string_view bytes) { return hex(XXH3_128bits(bytes.data(), bytes.size())); }

std::string checksum(const Tensor& x) { return checksum(detail::element_bytes(x.contiguous())); }

std::string detail::fingerprint(const Tensor& x) { return checksum(x); }

std::string checksum(const RegularFile& file) {
  std::vector<char> part(std::min<std::uint64_t>(file.size(), std::uint64_t{1} << 20));
  Sum sum;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    const std::uint64_t bytes = std::min<std::uint64_t>(part.size(), file.size() - at);
    file.read_at(at, part.data(), bytes);
    sum.add(part.data(), bytes);
  }
  return sum.hex();
}

std::string checksum(const std::map<std::string, Tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  Sum sum;
  for (const auto& [name, tensor] : tensors) {
    sum.add_piece(name);
    sum.add_piece(braid::name(tensor.dtype()));
    sum.add_piece(to_string(tensor.shape()));
    sum.add_piece(detail::element_bytes(tensor.contiguous()));
  }
  sum.add_piece("metadata");
  for (const auto& [key, value] : metadata) {
    sum.add_piece(key);
    sum.add_piece(value);
  }
  return sum.hex();
}

}  // namespace braid
