#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <braid/core/random.h>
#include <braid/core/tensor.h>

namespace braid::examples {

/// Inputs and the characters that follow them, both [batch, context] i32.
struct Batch {
  Tensor tokens, targets;
};

/// A text as ids of its characters (Unicode code points), the last tenth held out.
class Corpus {
 public:
  /// Throws ValueError when the text is not UTF-8 or a tenth of it not longer than `context`.
  Corpus(const std::string& text, std::int64_t context);

  std::int64_t vocab() const { return static_cast<std::int64_t>(characters_.size()); }
  /// The distinct characters, in the order of their ids, as UTF-8.
  std::string alphabet() const;
  /// Of a character, if the text has it.
  std::optional<std::int32_t> id(char32_t character) const;
  std::string decode(std::span<const std::int32_t> ids) const;
  /// Of the text.
  const std::string& checksum() const { return checksum_; }
  std::int64_t train_size() const { return train_size_; }
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }

  /// Windows at random places of the training part.
  Batch sample(std::int64_t batch, Rng& rng) const;
  /// The held-out part in windows that do not overlap, `batch` at a time, in order.
  std::vector<Batch> held_out(std::int64_t batch) const;

 private:
  Batch windows(std::span<const std::int64_t> starts) const;

  std::int64_t context_, train_size_;
  std::string checksum_;
  std::vector<char32_t> characters_;
  std::vector<std::int32_t> ids_;
};

/// The text of a file; with an empty path the license texts that Debian ships.
/// Throws FileError when it cannot be read.
std::string read_text(const std::filesystem::path& path);

}  // namespace braid::examples
