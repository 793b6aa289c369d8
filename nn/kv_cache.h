#pragma once
#include <cstdint>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::nn {

/// The keys and values that one attention layer has computed. The memory grows by doubling, so that a token costs the
/// same however many came before it.
class LayerCache {
 public:
  /// Puts `keys` and `values` [B, T, kv_heads, D] behind the first `position` ones and forgets what was there.
  void write(std::int64_t position, const Tensor& keys, const Tensor& values);

  /// Views of what sequence `b` has at its first `length` positions, [1, length, kv_heads, D].
  Tensor keys(std::int64_t b, std::int64_t length) const { return rows(keys_, b, length); }
  Tensor values(std::int64_t b, std::int64_t length) const {
    return rows(values_, b, length);
  }  ///< the values of these

 private:
  static Tensor rows(const Tensor& all, std::int64_t b, std::int64_t length);

  Tensor keys_, values_;  // [B, room, kv_heads, D]
};

/// What a transformer keeps of the tokens that it has read, so that the next ones cost only themselves:
///
///     nn::KVCache cache = model.make_cache(1);
///     Tensor logits = model.next_logits(prompt, cache);  // [1, vocab], for the token after the prompt
///     logits = model.next_logits(token, cache);          // for the one after that
///
/// Setting `length` to less forgets the last tokens. A value: a copy goes its own way.
struct KVCache {
  std::int64_t batch, room;        ///< sequences, and the most tokens of each
  std::int64_t length = 0;         ///< tokens of each sequence that were read
  std::vector<LayerCache> layers;  ///< by block
};

}  // namespace braid::nn
