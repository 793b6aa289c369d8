#include <braid/core/files/checksum.h>

#include <xxhash.h>

#include <memory>
#include <new>

#include <fmt/format.h>

namespace braid {
namespace {

std::string hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

/// The checksum of pieces, each preceded by its length, so that no two lists of pieces give the same bytes.
class Sum {
 public:
  Sum() {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }

  void add(const void* data, std::uint64_t bytes) {
    XXH3_128bits_update(state_.get(), &bytes, sizeof(bytes));
    if (bytes > 0) XXH3_128bits_update(state_.get(), data, bytes);
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::string hex() const { return braid::hex(XXH3_128bits_digest(state_.get())); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

}  // namespace

std::string checksum(std::string_view bytes) { return hex(XXH3_128bits(bytes.data(), bytes.size())); }

std::string checksum(const Tensor& x) {
  const Tensor elements = x.contiguous();
  return hex(XXH3_128bits(elements.bytes(), static_cast<std::size_t>(x.numel()) * size_of(x.dtype())));
}

std::string checksum(const std::map<std::string, Tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  Sum sum;
  for (const auto& [name, tensor] : tensors) {
    const Tensor elements = tensor.contiguous();
    sum.add(name);
    sum.add(braid::name(tensor.dtype()));
    sum.add(to_string(tensor.shape()));
    sum.add(elements.bytes(), static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype()));
  }
  sum.add("metadata");
  for (const auto& [key, value] : metadata) {
    sum.add(key);
    sum.add(value);
  }
  return sum.hex();
}

}  // namespace braid
