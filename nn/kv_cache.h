#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::nn {

/// The keys and values of the positions that one attention layer has read. The memory grows by doubling, so that
/// appending a token takes constant time on average.
class PositionCache {
 public:
  /// Writes `keys` and `values` [B, T, kv_heads, D] from `position` on; undefined values are the keys. Later positions
  /// are forgotten, and with a window those that neither `position` nor any after it sees, in blocks of 64. Throws as
  /// check() does, and ShapeError unless they are like those before, but for T.
  void write(std::int64_t position, const Tensor& keys, const Tensor& values, std::int64_t window = 0);
  /// Throws ValueError unless `position` is one that was read or the next, and if positions that it sees are forgotten.
  void check(std::int64_t position, std::int64_t window) const;

  /// A view of the keys at the positions that are kept, up to `length`: [B, kept, kv_heads, D].
  Tensor keys(std::int64_t length) const { return keys_.slice(1, 0, length - first_); }
  /// The same for the values, [B, kept, kv_heads, D].
  Tensor values(std::int64_t length) const {
    return values_.defined() ? values_.slice(1, 0, length - first_) : keys(length);
  }
  std::int64_t first() const { return first_; }  ///< the first position that is kept

 private:
  Tensor keys_, values_;              // [B, room, kv_heads, D]
  std::int64_t first_ = 0, end_ = 0;  // the positions that are kept
};

/// What a Compressor has read and made.
struct CompressionCache {
  PositionCache rows;     ///< what it mapped the last positions to, as keys, and their gates, as values
  PositionCache entries;  ///< by their numbers
};

/// What one attention layer has computed.
struct LayerCache : PositionCache {
  CompressionCache compressor, indexer;  ///< with compression only
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

namespace detail {

/// Attention cuts what it sees into blocks of as many keys, from the first one on.
inline constexpr std::int64_t kKeyBlock = 64;

/// The first position that `position` sees in its window; 0 of all.
inline std::int64_t first_seen(std::int64_t position, std::int64_t window) {
  return window > 0 ? std::max<std::int64_t>(0, position - window + 1) : 0;
}

}  // namespace detail
}  // namespace braid::nn
