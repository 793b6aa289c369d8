#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::nn::detail {

/// Tokens that are found in a text as they stand, before anything else is done with it.
class AddedTokens {
 public:
  /// Of texts, none of which is empty, and their ids.
  explicit AddedTokens(std::vector<std::pair<std::string, std::int32_t>> tokens);

  /// Goes through the text: `token` gets the ids of those found, at every place the longest, and `between` what stands
  /// between them.
  void split(std::string_view text, const std::function<void(std::int32_t)>& token,
             const std::function<void(std::string_view)>& between) const;

 private:
  using Token = std::pair<std::string, std::int32_t>;
  const Token* longest_at_start(std::string_view text) const;

  std::vector<Token> tokens_;  // sorted
  std::array<bool, 256> starts_{};
};

}  // namespace braid::nn::detail
