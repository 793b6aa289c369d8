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

namespace braid::apps {

/// Inputs and the ids that follow them, both [batch, context] i32.
struct Batch {
  Tensor tokens, targets;
};

/// A text as ids of its characters (Unicode code points) or tokens, the last tenth held out.
class Corpus {
 public:
  /// Ids of the text's characters. Throws ValueError when the text is not UTF-8 or a tenth of it is not longer than
  /// `context`.
  Corpus(const std::string& text, std::int64_t context);
  /// Ids of the vocabulary.
  Corpus(const std::string& text, Vocabulary vocabulary, std::int64_t context);
  /// The ids of a file, which is not copied. Throws ValueError when the vocabulary lacks one of them.
  Corpus(TokenFile file, Vocabulary vocabulary, std::int64_t context);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::int64_t vocab() const { return vocabulary_.size(); }
  std::string alphabet() const { return vocabulary_.alphabet(); }
  std::string decode(std::span<const std::int32_t> ids) const { return vocabulary_.decode(ids); }
  /// The checksum of the text.
  const std::string& checksum() const { return checksum_; }
  /// The checksum of the tokenizer; empty when there is none.
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

/// The corpus that the paths `text` and `tokenizer`, which may be empty, name. A text that ends in .bin is a file of
/// token ids; without a tokenizer, its vocabulary ends with its highest id. Any other text is read as tokens, or
/// without a tokenizer as characters: those of `alphabet`, or else its own. Throws what the constructors, TokenFile,
/// Tokenizer and Vocabulary::encode do.
Corpus read_corpus(const std::filesystem::path& text, const std::filesystem::path& tokenizer, std::int64_t context,
                   const std::string& alphabet = "");

}  // namespace braid::apps
