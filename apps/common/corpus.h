#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <braid/core/random.h>
#include <braid/core/tensor.h>

#include "token_file.h"
#include "vocabulary.h"

namespace braid::examples {

/// Inputs and the ids that follow them, both [batch, context] i32.
struct Batch {
  Tensor tokens, targets;
};

/// A text as ids of its characters (Unicode code points) or tokens, the last tenth held out.
class Corpus {
 public:
  /// Of characters. Throws ValueError when the text is not UTF-8 or a tenth of it not longer than `context`.
  Corpus(const std::string& text, std::int64_t context);
  /// Of what the vocabulary has.
  Corpus(const std::string& text, Vocabulary vocabulary, std::int64_t context);
  /// Of a file of tokens; nothing of it is copied. Throws ValueError when it has ids that the vocabulary has not.
  Corpus(TokenFile file, Vocabulary vocabulary, std::int64_t context);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::int64_t vocab() const { return vocabulary_.size(); }
  std::string alphabet() const { return vocabulary_.alphabet(); }
  std::string decode(std::span<const std::int32_t> ids) const { return vocabulary_.decode(ids); }
  /// Of the text.
  const std::string& checksum() const { return checksum_; }
  /// Of its tokenizer; empty when it has none.
  std::string tokenizer_checksum() const;
  std::int64_t train_size() const { return train_size_; }
  std::int64_t size() const { return size_; }

  /// Windows at random places of the training part.
  Batch sample(std::int64_t batch, Rng& rng) const;
  /// The held-out part in windows that do not overlap, `batch` at a time, in order.
  std::vector<Batch> held_out(std::int64_t batch) const;

 private:
  using Ids = std::variant<std::vector<std::int32_t>, TokenFile>;

  Corpus(Ids ids, Vocabulary vocabulary, std::string checksum, std::int64_t context);
  Batch windows(std::span<const std::int64_t> starts) const;
  /// Writes a window's ids and returns their end.
  std::int32_t* copy(std::int64_t start, std::int32_t* out) const;

  Vocabulary vocabulary_;
  std::string checksum_;
  Ids ids_;
  std::int64_t context_, size_, train_size_;
};

/// The text of a file; with an empty path the license texts that Debian ships.
/// Throws FileError when it cannot be read.
std::string read_text(const std::filesystem::path& path);

/// What `text` and `tokenizer` name, which may be empty: a file of tokens when the name of the text ends in .bin, of as
/// many as the tokenizer has or else the highest id tells; or a text in tokens, or in characters when there is no
/// tokenizer. Throws what the constructors, TokenFile and Tokenizer do.
Corpus read_corpus(const std::filesystem::path& text, const std::filesystem::path& tokenizer, std::int64_t context);

}  // namespace braid::examples
