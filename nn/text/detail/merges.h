#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid::nn::detail {

/// The pair of ids that becomes one.
struct Merge {
  std::int32_t left, right, merged;
};

/// Merges the bytes of words: always the pair that comes first in the list, and of equal ones the leftmost.
class Merges {
 public:
  /// `byte_ids` are those of the single bytes, -1 where there is none.
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
