#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::nn {

namespace detail {
struct TokenizerTables;
}

/// What encode adds to a text.
struct EncodeOptions {
  bool add_special_tokens = true;  ///< those that the file's post_processor puts around a text
};

/// Byte-level byte pair encoding (arXiv:1508.07909) as GPT-2, Llama 3 and Qwen use it, from the tokenizer.json of
/// Hugging Face's tokenizers: the same ids. A value: copies share the tables. Threads may use one together.
///
/// What it does with a text: tokens of `added_tokens` are found first; what stands between them is normalized (NFC or
/// not at all) and cut into words by regular expressions; the bytes of a word are merged, pair by pair, in the order
/// of `merges`. Truncation, padding and offsets are left aside.
class Tokenizer {
 public:
  /// Throws FileError naming the file, and what in it is damaged or is nothing that this tokenizer does.
  static Tokenizer load(const std::filesystem::path& file);
  /// The same of a file's content; messages start with `where`.
  static Tokenizer parse(std::string_view json, const std::string& where = "tokenizer.json");

  /// The highest id + 1. There may be ids below it that are no tokens.
  std::int64_t vocab() const;
  /// Of a token, be it an added one or the bytes of an ordinary one.
  std::optional<std::int32_t> id(std::string_view token) const;
  /// The bytes that a token stands for; none when `id` is no token.
  std::optional<std::string_view> token(std::int32_t id) const;
  /// What ends a text: `<|endoftext|>`, `<|end_of_text|>` or `</s>`, if one of them is an added token.
  std::optional<std::int32_t> eos() const;

  /// Throws ValueError when the text is not UTF-8, telling where, or has a byte that is no token.
  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The bytes of all ids, special tokens included: the text, if ids are those of a text; a part of the ids may begin
  /// or end amid a character. Throws ValueError naming an id that is no token.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerTables> tables) : tables_(std::move(tables)) {}

  std::shared_ptr<const detail::TokenizerTables> tables_;
};

}  // namespace braid::nn
