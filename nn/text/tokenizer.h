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

/// Settings of Tokenizer::encode.
struct EncodeOptions {
  bool add_special_tokens = true;  ///< adds the tokens that the file's post_processor puts around a text
};

/// Byte-level byte pair encoding (arXiv:1508.07909) as GPT-2, Llama 3 and Qwen use it, from a tokenizer.json of Hugging
/// Face's tokenizers, with the same ids. A value: copies share the tables. Threads may use one tokenizer together.
///
/// Encoding first finds the tokens of `added_tokens`; the text between them is normalized (NFC or not at all) and split
/// into words by regular expressions; the bytes of a word are merged, pair by pair, in the order of `merges`.
/// Truncation, padding and offsets are not supported.
class Tokenizer {
 public:
  /// Throws UnreadableFile, or FileError naming the file and the part of it that is damaged, not supported or out of
  /// proportion to the file's size.
  static Tokenizer load(const std::filesystem::path& file);
  /// The same for the contents of a file; messages start with `where`. Throws FileError as load() does.
  static Tokenizer parse(std::string_view json, const std::string& where = "tokenizer.json");

  /// The highest id + 1. Some ids below it may have no token.
  std::int64_t vocab() const;
  /// The id of a token, given as the text of an added token or the bytes of an ordinary one; nullopt if there is none.
  std::optional<std::int32_t> id(std::string_view token) const;
  /// The bytes that an id decodes to; nullopt when no token has it.
  std::optional<std::string_view> token(std::int32_t id) const;
  /// The id of the end of a text: of `<|endoftext|>`, `<|end_of_text|>` or `</s>`, if one of them is an added token.
  std::optional<std::int32_t> eos() const;

  /// The ids of a text. Throws ValueError with the offset when the text is not UTF-8, when a byte has no token, or when
  /// the file's patterns take more than a hundred steps for each byte of the text.
  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The bytes of all ids, special tokens included. Those of some of a text's ids may begin or end inside a character.
  /// Throws ValueError naming an id without a token.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerTables> tables) : tables_(std::move(tables)) {}

  std::shared_ptr<const detail::TokenizerTables> tables_;
};

}  // namespace braid::nn
