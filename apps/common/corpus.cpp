#include "corpus.h"

#include <algorithm>

#include <braid/core/error.h>
#include <braid/core/files/checksum.h>
#include <braid/core/utf8.h>

#include "memory.h"
#include "read_file.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

std::string read_named(const fs::path& path) {
  std::error_code none;
  check<FileError>(fs::is_regular_file(path, none), "--text: {} is not a file that can be read",
                   fs::absolute(path, none).string());
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
    if (const std::string content = read_file(file); is_utf8(content)) text += content;
  return text;
}

}  // namespace

std::string read_text(const fs::path& path) {
  if (!path.empty()) return read_named(path);
  std::string text = read_folder("/usr/share/common-licenses");
  check<FileError>(!text.empty(), "--text: this system has no license texts to learn from; name a text file");
  return text;
}

Corpus read_corpus(const fs::path& text, const fs::path& tokenizer, std::int64_t context, const std::string& alphabet) {
  const bool has_tokenizer = !tokenizer.empty();
  if (text.extension() == ".bin") {
    constexpr std::int64_t kLargest = std::int64_t{1} << 18;  // of vocabularies in use

    TokenFile file(fs::absolute(text));  // so that messages say where it was looked for
    const std::int64_t size = has_tokenizer ? 0 : file.highest_id() + 1;
    check<FileError>(size <= std::max(kLargest, file.size()),
                     "--text: {}: {} ids allow ids below {} but there is {}; give the --tokenizer that made it",
                     text.string(), file.size(), std::max(kLargest, file.size()), size - 1);
    Vocabulary vocabulary = has_tokenizer ? Vocabulary::of_tokenizer(tokenizer) : Vocabulary::of_numbers(size);
    return {std::move(file), std::move(vocabulary), context};
  }
  if (!has_tokenizer && alphabet.empty()) return {read_text(text), context};
  Vocabulary vocabulary =
      has_tokenizer ? Vocabulary::of_tokenizer(tokenizer) : Vocabulary::of_characters(alphabet, "alphabet");
  return {read_text(text), std::move(vocabulary), context};
}

Corpus::Corpus(Ids ids, Vocabulary vocabulary, std::string checksum, std::int64_t context)
    : vocabulary_(std::move(vocabulary)),
      checksum_(std::move(checksum)),
      ids_(std::move(ids)),
      context_(context),
      size_(std::visit([](const auto& there) { return static_cast<std::int64_t>(there.size()); }, ids_)),
      train_size_(size_ * 9 / 10) {
  check_value(size_ - train_size_ > context, "--text: {} {} are too few: a tenth of them must exceed --context {}",
              size_, vocabulary_.unit(), context);
}

Corpus::Corpus(const std::string& text, std::int64_t context)
    : Corpus(text, Vocabulary::of_characters(text, "--text"), context) {}

Corpus::Corpus(const std::string& text, Vocabulary vocabulary, std::int64_t context)
    : Corpus(Ids(vocabulary.encode(text, "--text")), vocabulary, braid::checksum(text), context) {}

Corpus::Corpus(TokenFile file, Vocabulary vocabulary, std::int64_t context)
    : Corpus(Ids(file), std::move(vocabulary), braid::checksum(file.file()), context) {
  const std::int64_t highest = file.highest_id();
  check_value(highest < vocab(), "--text: must have ids below {}, as the tokenizer, but has {}", vocab(), highest);
}

std::string Corpus::tokenizer_checksum() const {
  return vocabulary_.tokenizer_json().empty() ? "" : braid::checksum(vocabulary_.tokenizer_json());
}

Batch Corpus::windows(std::span<const std::int64_t> starts) const {
  const Shape shape{static_cast<std::int64_t>(starts.size()), context_};
  Batch batch{Tensor(shape, DType::i32), Tensor(shape, DType::i32)};
  auto* tokens = batch.tokens.mutable_data<std::int32_t>();
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  for (const std::int64_t start : starts) {
    tokens = copy(start, tokens);
    targets = copy(start + 1, targets);
  }
  return batch;
}

std::int32_t* Corpus::copy(std::int64_t start, std::int32_t* out) const {
  if (const auto* file = std::get_if<TokenFile>(&ids_)) return file->copy(start, context_, out);
  return std::copy_n(std::get<std::vector<std::int32_t>>(ids_).begin() + start, context_, out);
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

}  // namespace braid::apps
