#include "corpus.h"

#include <algorithm>

#include <braid/core/checksum.h>
#include <braid/core/detail/utf8.h>
#include <braid/core/error.h>

#include "memory.h"
#include "read_file.h"

namespace braid::examples {
namespace {

namespace fs = std::filesystem;

/// Code points of UTF-8 text.
std::vector<char32_t> decode_utf8(const std::string& text) {
  std::vector<char32_t> points;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = detail::next_code_point(text, at);
    check_value(point.has_value(), "--text: must be UTF-8 but no character starts at offset {} with byte 0x{:02X}", at,
                static_cast<unsigned char>(text[at]));
    points.push_back(*point);
  }
  return points;
}

std::string read_named(const fs::path& path) {
  std::error_code none;
  check<FileError>(fs::is_regular_file(path, none), "--text: {} is not a file that can be read", path.string());
  check_memory(fmt::format("--text: the characters of {}", path.string()),
               4 * static_cast<double>(fs::file_size(path)));
  return read_file(path);
}

/// The regular files of a folder, in the order of their names.
std::string read_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none))
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  std::ranges::sort(files);
  std::string text;
  for (const fs::path& file : files)
    if (const std::string content = read_file(file); detail::is_utf8(content)) text += content;
  return text;
}

}  // namespace

std::string read_text(const fs::path& path) {
  if (!path.empty()) return read_named(path);
  std::string text = read_folder("/usr/share/common-licenses");
  check<FileError>(!text.empty(), "--text: this system has no license texts to learn from; name a text file");
  return text;
}

Corpus::Corpus(const std::string& text, std::int64_t context) : context_(context), checksum_(braid::checksum(text)) {
  const std::vector<char32_t> points = decode_utf8(text);
  characters_ = points;
  std::ranges::sort(characters_);
  characters_.erase(std::ranges::unique(characters_).begin(), characters_.end());
  for (const char32_t point : points)
    ids_.push_back(static_cast<std::int32_t>(std::ranges::lower_bound(characters_, point) - characters_.begin()));
  train_size_ = size() * 9 / 10;
  check_value(size() - train_size_ > context,
              "--text: {} characters are too few: a tenth of them must exceed --context {}", size(), context);
}

std::string Corpus::alphabet() const {
  std::string text;
  for (const char32_t point : characters_) detail::append_utf8(text, point);
  return text;
}

std::optional<std::int32_t> Corpus::id(char32_t character) const {
  const auto found = std::ranges::lower_bound(characters_, character);
  if (found == characters_.end() || *found != character) return std::nullopt;
  return static_cast<std::int32_t>(found - characters_.begin());
}

std::string Corpus::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) detail::append_utf8(text, characters_[static_cast<std::size_t>(id)]);
  return text;
}

Batch Corpus::windows(std::span<const std::int64_t> starts) const {
  const Shape shape{static_cast<std::int64_t>(starts.size()), context_};
  Batch batch{Tensor(shape, DType::i32), Tensor(shape, DType::i32)};
  auto* tokens = batch.tokens.mutable_data<std::int32_t>();
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  for (const std::int64_t start : starts) {
    tokens = std::copy_n(ids_.begin() + start, context_, tokens);
    targets = std::copy_n(ids_.begin() + start + 1, context_, targets);
  }
  return batch;
}

Batch Corpus::sample(std::int64_t batch, Rng& rng) const {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(batch));
  for (std::int64_t& start : starts) start = rng.below(train_size_ - context_);
  return windows(starts);
}

std::vector<Batch> Corpus::held_out(std::int64_t batch) const {
  std::vector<Batch> batches;
  std::vector<std::int64_t> starts;
  for (std::int64_t start = train_size_; start + context_ < size(); start += context_) {
    starts.push_back(start);
    if (static_cast<std::int64_t>(starts.size()) == batch || start + 2 * context_ >= size()) {
      batches.push_back(windows(starts));
      starts.clear();
    }
  }
  return batches;
}

}  // namespace braid::examples
