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

namespace braid::examples {

/// What ids stand for: characters (Unicode code points), the tokens of a tokenizer, or numbers of which nothing is
/// known.
class Vocabulary {
 public:
  /// The distinct characters of a text, ids in the order of their code points. Throws ValueError that begins with
  /// `what` when it is not UTF-8.
  static Vocabulary of_characters(std::string_view text, std::string_view what);
  /// Of a tokenizer.json. Throws FileError naming it.
  static Vocabulary of_tokenizer(const std::filesystem::path& file);
  static Vocabulary of_numbers(std::int64_t size);

  std::int64_t size() const;
  /// "characters" or "tokens".
  const char* unit() const { return unit_; }
  /// Throws ValueError that begins with `what` when the text is not UTF-8 or has a character that is not there.
  std::vector<std::int32_t> encode(std::string_view text, std::string_view what, bool add_special_tokens = false) const;
  /// Of tokens, bytes that may begin or end amid a character; U+FFFD for ids that stand for nothing.
  std::string decode(std::span<const std::int32_t> ids) const;
  /// What a text from nowhere follows: the end of another one, or a line break, or whatever has the id 0.
  std::int32_t start() const;
  /// What ends a text, if there is such a token.
  std::optional<std::int32_t> eos() const;

  /// All characters, in the order of their ids, as UTF-8; empty for other vocabularies.
  std::string alphabet() const;
  /// The file; empty for other vocabularies.
  const std::string& tokenizer_json() const { return tokenizer_json_; }

 private:
  Vocabulary() = default;

  std::u32string characters_;  // sorted
  std::optional<nn::Tokenizer> tokenizer_;
  std::string tokenizer_json_;
  const char* unit_ = "tokens";
  std::int64_t size_ = 0;
};

}  // namespace braid::examples
