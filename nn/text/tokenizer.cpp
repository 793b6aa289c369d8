#include <braid/nn/text/tokenizer.h>

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <unordered_map>

#include <braid/core/error.h>
#include <braid/core/files/file_system.h>
#include <braid/core/utf8.h>
#include <braid/nn/text/detail/merges.h>
#include <braid/nn/text/detail/tokenizer_json.h>

namespace braid::nn {
namespace {

using Ids = std::vector<std::int32_t>;

/// Refuses marks without end: utf8proc sorts those after a letter in the square of their number.
void check_marks(std::string_view text) {
  constexpr int kMost = 1000;
  for (std::size_t at = 0, marks = 0; at < text.size();) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(*next_code_point(text, at)));
    marks = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME ? marks + 1 : 0;
    check_value(marks <= kMost, "encode: a letter must have at most {} combining marks but has more", kMost);
  }
}

/// Unicode's normalization form C. Characters below U+0300, the first that combines with others, are in it already.
std::string nfc(std::string_view text) {
  constexpr unsigned char kFirstByteOfU0300 = 0xCC;
  const auto is_below = [](char c) { return static_cast<unsigned char>(c) < kFirstByteOfU0300; };
  if (std::ranges::all_of(text, is_below)) return std::string(text);
  check_marks(text);
  utf8proc_uint8_t* normal = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &normal, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(normal, std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  check_value(size >= 0, "encode: {}", utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(normal), static_cast<std::size_t>(size)};
}

}  // namespace

namespace detail {

/// Finds added tokens in a text, literally and before the text is split into words.
class AddedTokens {
 public:
  /// Those that are searched for after normalization, or those before it. Their texts are not empty.
  AddedTokens(const TokenizerFile& file, bool normalized) {
    for (const AddedToken& token : file.added)
      if (token.normalized == normalized)
        tokens_.emplace_back(normalized && file.nfc ? nfc(token.text) : token.text, token.id);
    std::ranges::sort(tokens_);
    for (const auto& [text, id] : tokens_) starts_[static_cast<unsigned char>(text[0])] = true;
  }

  /// Scans the text: calls `token` with the id of each token found, the longest at every place, and `between` with the
  /// text between them. Throws ValueError when comparing takes more steps than `work` has.
  void split(std::string_view text, Budget& work, const auto& token, const auto& between) const {
    std::size_t start = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Token* found =
          starts_[static_cast<unsigned char>(text[at])] ? longest_at_start(text.substr(at), work) : nullptr;
      if (found == nullptr) {
        ++at;
        continue;
      }
      if (at > start) between(text.substr(start, at - start));
      token(found->second);
      start = at += found->first.size();
    }
    if (start < text.size()) between(text.substr(start));
  }

 private:
  using Token = std::pair<std::string, std::int32_t>;

  const Token* longest_at_start(std::string_view text, Budget& work) const {
    const Token* longest = nullptr;
    std::span rest(tokens_);  // those that agree with the first n bytes
    for (std::size_t n = 0; n < text.size() && !rest.empty(); ++n) {
      work.spend<ValueError>(1, "encode: added tokens", "steps");
      const auto byte = [n](const Token& t) {
        return t.first.size() > n ? static_cast<unsigned char>(t.first[n]) : -1;
      };
      const auto agreeing = std::ranges::equal_range(rest, static_cast<unsigned char>(text[n]), {}, byte);
      rest = {agreeing.begin(), agreeing.end()};
      if (!rest.empty() && rest.front().first.size() == n + 1) longest = &rest.front();
    }
    return longest;
  }

  std::vector<Token> tokens_;  // sorted
  std::array<bool, 256> starts_{};
};

struct TokenizerTables {
  TokenizerFile file;
  AddedTokens raw{file, false}, normalized{file, true};
  Merges merges{file};
};

}  // namespace detail

namespace {

/// Encodes one text and remembers the ids of its words, most of which recur.
class Encoder {
 public:
  explicit Encoder(const detail::TokenizerTables& tables) : tables_(tables) {}

  Ids encode(std::string_view text) {
    constexpr std::uint64_t kStepsPerByte = 100;  // known files take five
    work_ = Budget(text.size(), kStepsPerByte);
    const auto token = [&](std::int32_t id) { ids_.push_back(id); };
    tables_.raw.split(text, work_, token, [&](std::string_view between) {
      const std::string normal = tables_.file.nfc ? nfc(between) : "";
      tables_.normalized.split(tables_.file.nfc ? normal : between, work_, token,
                               [&](std::string_view piece) { add_piece(piece); });
    });
    return std::move(ids_);
  }

 private:
  void add_piece(std::string_view text) {
    if (tables_.file.add_prefix_space && text[0] != ' ') return add_words(std::string(1, ' ').append(text), 0);
    add_words(text, 0);
  }

  /// Encodes a piece that the first `pattern` patterns have split off.
  void add_words(std::string_view text, std::size_t pattern) {
    if (pattern == tables_.file.patterns.size()) return add_word(text);
    tables_.file.patterns[pattern].split(text, work_, [&](std::string_view piece) { add_words(piece, pattern + 1); });
  }

  void add_word(std::string_view word) {
    constexpr std::size_t kMostWords = 1 << 17, kMostBytes = 64;
    const auto known = words_.find(word);
    if (known != words_.end()) {
      ids_.insert(ids_.end(), known->second.begin(), known->second.end());
      return;
    }
    const std::size_t before = ids_.size();
    if (const auto whole = tables_.file.ignore_merges ? tables_.file.id(word) : std::nullopt)
      ids_.push_back(*whole);
    else
      tables_.merges.encode(word, ids_);
    if (words_.size() < kMostWords && word.size() <= kMostBytes)
      words_.emplace(word, Ids(ids_.begin() + static_cast<std::ptrdiff_t>(before), ids_.end()));
  }

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  const detail::TokenizerTables& tables_;
  Budget work_{0};
  Ids ids_;
  std::unordered_map<std::string, Ids, Hash, std::equal_to<>> words_;
};

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  return parse(RegularFile(file.string(), file).contents(), file.string());
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& where) try {
  return Tokenizer(
      std::make_shared<detail::TokenizerTables>(detail::TokenizerTables{detail::parse_tokenizer(json, where)}));
} catch (const ValueError& error) {  // of a token that is normalized
  throw FileError(fmt::format("{}: {}", where, error.what()));
}

std::int64_t Tokenizer::vocab() const { return static_cast<std::int64_t>(tables_->file.tokens.size()); }

std::optional<std::int32_t> Tokenizer::id(std::string_view token) const {
  const detail::TokenizerFile& file = tables_->file;
  const auto added = std::ranges::find(file.added, token, &detail::AddedToken::text);
  return added == file.added.end() ? file.id(token) : added->id;
}

std::optional<std::string_view> Tokenizer::token(std::int32_t id) const {
  if (id < 0 || id >= vocab()) return std::nullopt;
  return tables_->file.tokens[static_cast<std::size_t>(id)];
}

std::optional<std::int32_t> Tokenizer::eos() const {
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>"})
    for (const detail::AddedToken& token : tables_->file.added)
      if (token.text == name) return token.id;
  return std::nullopt;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  for (std::size_t at = 0; at < text.size();)
    check_value(next_code_point(text, at).has_value(),
                "encode: the text must be UTF-8 but no character starts at offset {} with byte 0x{:02X}", at,
                static_cast<unsigned char>(text[at]));
  Ids ids = Encoder(*tables_).encode(text);
  if (options.add_special_tokens) {
    ids.insert(ids.begin(), tables_->file.before.begin(), tables_->file.before.end());
    ids.insert(ids.end(), tables_->file.after.begin(), tables_->file.after.end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    const auto bytes = token(id);
    check_value(bytes.has_value(), "decode: {} is no token of the {} there are", id, vocab());
    text += *bytes;
  }
  return text;
}

}  // namespace braid::nn
