#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
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
  explicit AddedTokens(std::vector<std::pair<std::string, std::int32_t>> tokens) : tokens_(std::move(tokens)) {
    std::ranges::sort(tokens_);
    for (const auto& [text, id] : tokens_) starts_[static_cast<unsigned char>(text[0])] = true;
  }

  /// Scans the text: calls `token` with the id of each token found, the longest at every place, and `between` with the
  /// text between them. Throws ValueError when comparing takes more steps than `work` has.
  void split(std::string_view text, Budget& work, const auto& token, const auto& between) const {
    std::size_t start = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Token* found =
          starts_[static_cast<unsigned char>(text[at])] ? longest_at_start(text.substr(at), work) : nullptr;
      if (found == nullptr) {
        ++at;
        continue;
      }
      if (at > start) between(text.substr(start, at - start));
      token(found->second);
      start = at += found->first.size();
    }
    if (start < text.size()) between(text.substr(start));
  }

 private:
  using Token = std::pair<std::string, std::int32_t>;

  const Token* longest_at_start(std::string_view text, Budget& work) const {
    const Token* longest = nullptr;
    std::span rest(tokens_);  // those that agree with the first n bytes
    for (std::size_t n = 0; n < text.size() && !rest.empty(); ++n) {
      work.spend<ValueError>(1, "encode: added tokens", "steps");
      const auto byte = [n](const Token& t) {
        return t.first.size() > n ? static_cast<unsigned char>(t.first[n]) : -1;
      };
      const auto agreeing = std::ranges::equal_range(rest, static_cast<unsigned char>(text[n]), {}, byte);
      rest = {agreeing.begin(), agreeing.end()};
      if (!rest.empty() && rest.front().first.size() == n + 1) longest = &rest.front();
    }
    return longest;
  }

  std::vector<Token> tokens_;  // sorted
  std::array<bool, 256> starts_{};
};

}  // namespace braid::nn::detail
