#include <braid/nn/text/detail/added_tokens.h>

#include <algorithm>
#include <span>

namespace braid::nn::detail {

AddedTokens::AddedTokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_);
  for (const auto& [text, id] : tokens_) starts_[static_cast<unsigned char>(text[0])] = true;
}

const AddedTokens::Token* AddedTokens::longest_at_start(std::string_view text, Budget& work) const {
  const Token* longest = nullptr;
  std::span rest(tokens_);  // those that agree with the first n bytes
  for (std::size_t n = 0; n < text.size() && !rest.empty(); ++n) {
    work.spend<ValueError>(1, "encode: added tokens", "steps");
    const auto byte = [n](const Token& t) { return t.first.size() > n ? static_cast<unsigned char>(t.first[n]) : -1; };
    const auto agreeing = std::ranges::equal_range(rest, static_cast<unsigned char>(text[n]), {}, byte);
    rest = {agreeing.begin(), agreeing.end()};
    if (!rest.empty() && rest.front().first.size() == n + 1) longest = &rest.front();
  }
  return longest;
}

void AddedTokens::split(std::string_view text, Budget& work, const std::function<void(std::int32_t)>& token,
                        const std::function<void(std::string_view)>& between) const {
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

}  // namespace braid::nn::detail
