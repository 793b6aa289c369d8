#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <braid/nn/text/tokenizer.h>

namespace braid::apps {

/// The meaning of ids: characters (Unicode code points), the tokens of a tokenizer, or unknown (ids without a
/// tokenizer).
class Vocabulary {
 public:
  /// The distinct characters of a text, ids in the order of their code points. Throws ValueError that begins with
  /// `what` when it is not UTF-8.
  static Vocabulary of_characters(std::string_view text, std::string_view what);
  /// The tokens of a tokenizer.json. Throws FileError naming it when it cannot be read.
  static Vocabulary of_tokenizer(const std::filesystem::path& file);
  static Vocabulary of_numbers(std::int64_t size);

  std::int64_t size() const;
  /// "characters" or "tokens".
  const char* unit() const { return unit_; }
  /// Of numbers, the text is these. Throws ValueError that begins with `what` when the text is not UTF-8 or has what
  /// the vocabulary lacks.
  std::vector<std::int32_t> encode(std::string_view text, std::string_view what, bool add_special_tokens = false) const;
  /// The text of ids. Tokens are bytes and may begin or end inside a character; an unknown id becomes U+FFFD.
  std::string decode(std::span<const std::int32_t> ids) const;
  /// The id to generate from without a prompt: the end of a text, else a line break, else 0.
  std::int32_t start() const;
  /// The token that ends a text, if there is one.
  std::optional<std::int32_t> eos() const;

  /// All characters, in the order of their ids, as UTF-8; empty for other vocabularies.
  std::string alphabet() const;
  /// The content of tokenizer.json; empty for other vocabularies.
  const std::string& tokenizer_json() const { return tokenizer_json_; }

 private:
  Vocabulary() = default;

  std::u32string characters_;  // sorted
  std::optional<nn::Tokenizer> tokenizer_;
  std::string tokenizer_json_;
  const char* unit_ = "tokens";
  std::int64_t size_ = 0;
};

}  // namespace braid::apps
