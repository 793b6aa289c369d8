#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <braid/core/files/budget.h>
#include <braid/nn/text/detail/pattern.h>

namespace braid::nn::detail {

/// A pair of ids and the id that replaces it.
struct Merge {
  std::int32_t left, right, merged;
};

/// An entry of `added_tokens`.
struct AddedToken {
  std::string text;
  std::int32_t id;
  bool normalized;  ///< searched for after normalization, not before
};

/// The contents of a tokenizer.json.
struct TokenizerFile {
  Budget budget{0};                                   ///< of ids: the highest, and those around a text
  std::vector<std::optional<std::string>> tokens;     ///< by id: the bytes of the token
  std::unordered_map<std::string, std::int32_t> ids;  ///< by bytes, of the tokens that words are encoded as
  std::vector<Merge> merges;
  bool ignore_merges = false;  ///< a word that is a token is encoded as it, without merges
  std::vector<AddedToken> added;
  bool nfc = false;
  bool add_prefix_space = false;
  std::vector<Pattern> patterns;            ///< each splits the pieces that the ones before it leave
  std::vector<std::int32_t> before, after;  ///< ids added around a whole text

  /// The id of a token that words are encoded as.
  std::optional<std::int32_t> id(std::string_view bytes) const {
    const auto found = ids.find(std::string(bytes));
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  }
};

/// Throws FileError that starts with `where` and names the part that is damaged or not supported.
TokenizerFile parse_tokenizer(std::string_view json, const std::string& where);

}  // namespace braid::nn::detail
