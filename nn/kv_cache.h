#pragma once
#include <cstdint>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::nn {

/// The keys and values that one attention layer has computed. The memory grows by doubling, so that appending a token
/// takes constant time on average.
class LayerCache {
 public:
  /// Writes `keys` and `values` [B, T, kv_heads, D] from `position` on; later positions are forgotten, and with a
  /// window those that neither `position` nor any after it sees, in blocks of 64. Throws ValueError if those that it
  /// sees have been forgotten.
  void write(std::int64_t position, const Tensor& keys, const Tensor& values, std::int64_t window = 0);

  /// A view of the keys of sequence `b` at the positions that are kept, up to `length`: [1, kept, kv_heads, D].
  Tensor keys(std::int64_t b, std::int64_t length) const { return rows(keys_, b, length); }
  /// The same for its values.
  Tensor values(std::int64_t b, std::int64_t length) const { return rows(values_, b, length); }

 private:
  Tensor rows(const Tensor& all, std::int64_t b, std::int64_t length) const;

  Tensor keys_, values_;    // [B, room, kv_heads, D]
  std::int64_t first_ = 0;  // position that is kept
};

/// The keys and values of the tokens that a transformer has read, so that only new tokens are computed:
///
///     nn::KVCache cache = model.make_cache(1);
///     Tensor logits = model.next_logits(prompt, cache);  // [1, vocab], for the token after the prompt
///     logits = model.next_logits(token, cache);          // for the one after that
///
/// Setting `length` to less forgets the last tokens, but not more than a window of attention has kept. A value: copies
/// are independent.
struct KVCache {
  std::int64_t batch, room;        ///< sequences, and the most tokens of each
  std::int64_t length = 0;         ///< tokens read of each sequence
  std::vector<LayerCache> layers;  ///< by block
};

}  // namespace braid::nn
