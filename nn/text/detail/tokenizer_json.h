#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <braid/nn/text/detail/merges.h>
#include <braid/nn/text/detail/pattern.h>

namespace braid::nn::detail {

struct AddedToken {
  std::string text;
  std::int32_t id;
  bool normalized;  ///< found in the text after normalization, not before
};

/// What a tokenizer.json says.
struct TokenizerFile {
  std::vector<std::optional<std::string>> tokens;     ///< by id: the bytes that it stands for
  std::unordered_map<std::string, std::int32_t> ids;  ///< by these bytes, of tokens that words can become
  std::vector<Merge> merges;
  bool ignore_merges = false;  ///< a word that is a token becomes it, whatever its merges would give
  std::vector<AddedToken> added;
  bool nfc = false;
  bool add_prefix_space = false;
  std::vector<Pattern> patterns;            ///< each cuts what the ones before it leave
  std::vector<std::int32_t> before, after;  ///< a whole text
};

/// Throws FileError that starts with `where` and names what is damaged or not supported.
TokenizerFile parse_tokenizer(std::string_view json, const std::string& where);

}  // namespace braid::nn::detail
