#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/core/files/budget.h>

namespace braid::nn::detail {

/// Finds added tokens in a text, literally and before the text is split into words.
class AddedTokens {
 public:
  /// `tokens`: non-empty texts and their ids.
  explicit AddedTokens(std::vector<std::pair<std::string, std::int32_t>> tokens);

  /// Scans the text: calls `token` with the id of each token found, the longest at every place, and `between` with the
  /// text between them. Throws ValueError when comparing takes more steps than `work` has.
  void split(std::string_view text, Budget& work, const std::function<void(std::int32_t)>& token,
             const std::function<void(std::string_view)>& between) const;

 private:
  using Token = std::pair<std::string, std::int32_t>;
  const Token* longest_at_start(std::string_view text, Budget& work) const;

  std::vector<Token> tokens_;  // sorted
  std::array<bool, 256> starts_{};
};

}  // namespace braid::nn::detail
