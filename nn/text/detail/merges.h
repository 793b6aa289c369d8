#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid::nn::detail {

/// A pair of ids and the id that replaces it.
struct Merge {
  std::int32_t left, right, merged;
};

/// Merges the bytes of words: always the pair that comes first in the list, the leftmost of equal pairs.
class Merges {
 public:
  /// `byte_ids`: the id of each byte, -1 for a byte without a token.
  Merges(const std::array<std::int32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  /// Appends the ids of a word, in O(n log n). Throws ValueError naming a byte that is no token.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct Entry {
    std::int32_t rank, merged;
  };
  const Entry* find(std::int32_t left, std::int32_t right) const;

  std::array<std::int32_t, 256> byte_ids_;
  std::unordered_map<std::uint64_t, Entry> entries_;  // by both ids
};

}  // namespace braid::nn::detail
