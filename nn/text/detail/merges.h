#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <braid/core/error.h>
#include <braid/nn/text/detail/tokenizer_json.h>

namespace braid::nn::detail {

struct PairHash {  // random, so that no file knows which pairs collide
  std::uint64_t factor = std::uint64_t{std::random_device()()} << 32 | std::random_device()() | 1;
  std::size_t operator()(const std::pair<std::int32_t, std::int32_t>& ids) const {
    return (static_cast<std::uint64_t>(ids.first) << 32 | static_cast<std::uint32_t>(ids.second)) * factor >> 32;
  }
};

/// Merges the bytes of words: always the pair that comes first in the list, the leftmost of equal pairs.
class Merges {
 public:
  explicit Merges(const TokenizerFile& file) {
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte)
      byte_ids_[byte] = file.id(std::string(1, static_cast<char>(byte))).value_or(-1);
    entries_.reserve(file.merges.size());
    std::int32_t rank = 0;
    for (const auto& [left, right, merged] : file.merges)
      entries_.insert_or_assign({left, right}, Entry{rank++, merged});
  }

  /// Appends the ids of a word, in O(n log n). Throws ValueError naming a byte that is no token.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const {
    std::vector<Symbol> symbols(word.size());
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
    const auto consider = [&](std::size_t at) {
      if (at == kEnd || symbols[at].next == kEnd) return;
      if (const Entry* entry = find(symbols[at].id, symbols[symbols[at].next].id)) candidates.emplace(entry->rank, at);
    };
    for (std::size_t at = 0; at < word.size(); ++at) {
      const auto byte = static_cast<unsigned char>(word[at]);
      check_value(byte_ids_[byte] >= 0, "encode: the byte 0x{:02X} is no token", byte);
      symbols[at] = {byte_ids_[byte], at == 0 ? kEnd : at - 1, at + 1 == word.size() ? kEnd : at + 1};
    }
    for (std::size_t at = 0; at < word.size(); ++at) consider(at);

    while (!candidates.empty()) {
      const auto [rank, at] = candidates.top();
      candidates.pop();
      Symbol& left = symbols[at];
      if (left.id == kGone || left.next == kEnd) continue;
      Symbol& right = symbols[left.next];
      const Entry* entry = find(left.id, right.id);
      if (entry == nullptr || entry->rank != rank) continue;  // one of the two has grown meanwhile
      left.id = entry->merged;
      right.id = kGone;
      left.next = right.next;
      if (left.next != kEnd) symbols[left.next].previous = at;
      consider(left.previous);
      consider(at);
    }
    for (const Symbol& symbol : symbols)
      if (symbol.id != kGone) ids.push_back(symbol.id);
  }

 private:
  static constexpr std::size_t kEnd = ~std::size_t{0};
  static constexpr std::int32_t kGone = -1;

  /// A piece of a word, between its neighbors.
  struct Symbol {
    std::int32_t id;  // kGone: merged into a symbol before it
    std::size_t previous, next;
  };
  using Candidate = std::pair<std::int32_t, std::size_t>;  // rank of a pair when found, and place; merged in this order
  struct Entry {
    std::int32_t rank, merged;
  };

  const Entry* find(std::int32_t left, std::int32_t right) const {
    const auto found = entries_.find({left, right});
    return found == entries_.end() ? nullptr : &found->second;
  }

  std::array<std::int32_t, 256> byte_ids_;  // -1 for a byte without a token
  std::unordered_map<std::pair<std::int32_t, std::int32_t>, Entry, PairHash> entries_;
};

}  // namespace braid::nn::detail
