#include <braid/nn/text/detail/tokenizer_json.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include <braid/core/error.h>
#include <braid/core/utf8.h>

namespace braid::nn::detail {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostIds = std::int64_t{1} << 24;
constexpr std::size_t kMostSteps = 64;  // of a pre_tokenizer: each is a program and passes over the text
constexpr const char* kGPT2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A value as messages quote it. Contents of objects and lists are left out, since they may be nested without end.
std::string describe(const json& value) {
  if (value.is_structured()) return value.is_object() ? "an object" : "a list";
  const auto* text = value.get_ptr<const std::string*>();
  return text == nullptr ? value.dump() : '"' + excerpt(*text) + '"';
}

/// A value of the file and its path in it.
class Part {
 public:
  Part(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  /// The member `key`, null if absent.
  Part operator[](const std::string& key) const {
    static const json none;
    require(value_->is_object(), "must be an object");
    const auto found = value_->find(key);
    return {found == value_->end() ? none : *found, path_ + "." + excerpt(key)};
  }
  std::vector<Part> elements() const {
    require(value_->is_array(), "must be a list");
    std::vector<Part> parts;
    for (const json& element : *value_) parts.emplace_back(element, fmt::format("{}[{}]", path_, parts.size()));
    return parts;
  }

  const std::string& path() const { return path_; }
  bool is_null() const { return value_->is_null(); }
  const json& value() const { return *value_; }
  std::string text() const {
    require(value_->is_string(), "must be a string");
    return *value_;
  }
  bool flag(bool otherwise) const {
    require(is_null() || value_->is_boolean(), "must be true or false");
    return is_null() ? otherwise : value_->get<bool>();
  }
  std::int32_t id() const {
    const bool is_one = value_->is_number_unsigned() && value_->get<std::uint64_t>() < kMostIds;
    if (!is_one) require(false, fmt::format("must be an id below {}", kMostIds));
    return *value_;
  }

  /// Throws FileError that quotes the value unless `ok`.
  void require(bool ok, const std::string& what) const {
    if (!ok) refuse(fmt::format("{} but is {}", what, describe(*value_)));
  }
  /// Throws FileError unless the value is absent or `only`, the only supported one.
  void require_only(const json& only) const {
    if (!is_null() && *value_ != only)
      require(false, fmt::format("must be {}, the only supported value,", only.dump()));
  }
  [[noreturn]] void refuse(const std::string& why) const { throw FileError(path_ + " " + why); }

 private:
  const json* value_;
  std::string path_;
};

constexpr std::int16_t kNone = -1;

/// The byte that a character stands for, by code point. GPT-2 writes each byte as one character: a printable one of
/// Latin-1 as itself, another one as a character from U+0100 on.
constexpr auto kBytes = [] {
  std::array<std::int16_t, 0x144> bytes{};
  bytes.fill(kNone);
  std::size_t other = 0x100;
  for (std::int16_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    bytes[is_printable ? static_cast<std::size_t>(byte) : other++] = byte;
  }
  return bytes;
}();

/// The bytes that a token of a vocabulary encodes; nullopt when the text has other characters.
std::optional<std::string> bytes_of_token(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_code_point(text, at);
    if (!point || *point >= kBytes.size() || kBytes[*point] == kNone) return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[*point]));
  }
  return bytes;
}

/// The ids of tokens, spelled as in the file.
using Vocabulary = std::unordered_map<std::string, std::int32_t>;

void add_token(TokenizerFile& file, std::int32_t id, std::string bytes, const Part& part) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= file.tokens.size()) {
    file.budget.spend(index + 1 - file.tokens.size(), part.path(), "ids");
    file.tokens.resize(index + 1);
  }
  if (file.tokens[index]) part.refuse(fmt::format("has the id {} twice", id));
  file.tokens[index] = std::move(bytes);
}

Vocabulary read_vocabulary(const Part& part, TokenizerFile& file) {
  part.require(part.value().is_object() && !part.value().empty(), "must be an object of tokens");
  Vocabulary vocabulary;
  for (const auto& [text, value] : part.value().items()) {
    const std::int32_t id = part[text].id();
    const auto bytes = bytes_of_token(text);
    if (bytes) file.ids.emplace(*bytes, id);
    add_token(file, id, bytes.value_or(text), part);
    vocabulary.emplace(text, id);
  }
  return vocabulary;
}

/// "a b" or ["a", "b"].
std::pair<std::string, std::string> read_pair(const Part& merge) {
  if (merge.value().is_array()) {
    const std::vector<Part> both = merge.elements();
    merge.require(both.size() == 2, "must be a pair");
    return {both[0].text(), both[1].text()};
  }
  const std::string text = merge.text();
  const std::size_t space = text.find(' ');
  merge.require(std::ranges::count(text, ' ') == 1, "must be two tokens with a space between them");
  return {text.substr(0, space), text.substr(space + 1)};
}

std::vector<Merge> read_merges(const Part& part, const Vocabulary& vocabulary) {
  std::vector<Merge> merges;
  for (const Part& merge : part.elements()) {
    const auto id = [&](const std::string& token) {
      const auto found = vocabulary.find(token);
      if (found == vocabulary.end()) merge.refuse(fmt::format("is a merge of '{}', which is no token", excerpt(token)));
      return found->second;
    };
    const auto [left, right] = read_pair(merge);
    merges.push_back({id(left), id(right), id(left + right)});
  }
  return merges;
}

Vocabulary read_model(const Part& model, TokenizerFile& file) {
  model["type"].require_only("BPE");  // absent in files of the first versions
  model["dropout"].require_only(0);
  model["continuing_subword_prefix"].require_only("");
  model["end_of_word_suffix"].require_only("");
  model["byte_fallback"].require_only(false);
  file.ignore_merges = model["ignore_merges"].flag(false);
  Vocabulary vocabulary = read_vocabulary(model["vocab"], file);
  file.merges = read_merges(model["merges"], vocabulary);
  return vocabulary;
}

void read_added_tokens(const Part& part, const Vocabulary& vocabulary, TokenizerFile& file) {
  if (part.is_null()) return;
  for (const Part& token : part.elements()) {
    for (const char* way : {"single_word", "lstrip", "rstrip"}) token[way].require_only(false);
    const AddedToken added{token["content"].text(), token["id"].id(),
                           token["normalized"].flag(!token["special"].flag(false))};
    token["content"].require(!added.text.empty(), "must not be empty");
    const auto known = vocabulary.find(added.text);
    if (known == vocabulary.end())
      add_token(file, added.id, added.text, token);
    else
      token["id"].require(known->second == added.id, fmt::format("must be {}, as in model.vocab,", known->second));
    file.added.push_back(added);
  }
}

void add_pattern(TokenizerFile& file, const std::string& expression, const Part& part) {
  try {
    file.patterns.emplace_back(expression);
  } catch (const ValueError& error) {
    part.refuse(error.what());
  }
}

void read_pre_tokenizer(const Part& part, TokenizerFile& file) {
  const std::string type = part["type"].text();
  if (type == "ByteLevel") {
    const bool is_first = file.patterns.empty();
    file.add_prefix_space = part["add_prefix_space"].flag(true);
    if (!is_first) part["add_prefix_space"].require(!file.add_prefix_space, "must be false after other steps");
    if (part["use_regex"].flag(true)) add_pattern(file, kGPT2, part);
  } else if (type == "Split") {
    part["behavior"].require_only("Isolated");
    part["invert"].require_only(false);
    add_pattern(file, part["pattern"]["Regex"].text(), part["pattern"]["Regex"]);
  } else if (type == "Digits") {
    add_pattern(file, part["individual_digits"].flag(false) ? "\\p{N}" : "\\p{N}+", part);
  } else {
    part["type"].require(false, "must be ByteLevel, or Split, Digits or a Sequence of them before it,");
  }
}

void read_pre_tokenizers(const Part& part, TokenizerFile& file) {
  const auto is_byte_level = [](const Part& step) { return step["type"].value() == "ByteLevel"; };
  const bool is_sequence = part.value().is_object() && part["type"].value() == "Sequence";
  const std::vector<Part> steps = is_sequence ? part["pretokenizers"].elements() : std::vector{part};
  const bool ends_in_bytes = !steps.empty() && steps.back().value().is_object() && is_byte_level(steps.back());
  part.require(ends_in_bytes, "must be, or end in, ByteLevel");
  part.require(steps.size() <= kMostSteps, fmt::format("must have at most {} steps", kMostSteps));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].require(i + 1 == steps.size() || !is_byte_level(steps[i]), "must be the last step");
    read_pre_tokenizer(steps[i], file);
  }
}

void read_template(const Part& part, TokenizerFile& file) {
  bool before = true;
  for (const Part& piece : part["single"].elements()) {
    if (!piece["Sequence"].is_null()) {
      piece["Sequence"]["id"].require(before && piece["Sequence"]["id"].value() == "A", "must be one A");
      before = false;
      continue;
    }
    const std::string name = piece["SpecialToken"]["id"].text();
    const Part ids = part["special_tokens"][name]["ids"];
    file.budget.spend(ids.value().size(), part.path(), "ids");
    for (const Part& id : ids.elements()) {
      const auto index = static_cast<std::size_t>(id.id());
      id.require(index < file.tokens.size() && file.tokens[index], "must be a token");
      (before ? file.before : file.after).push_back(id.id());
    }
  }
  part["single"].require(!before, "must have the text");
}

void read_post_processor(const Part& part, TokenizerFile& file) {
  if (part.is_null()) return;
  const std::string type = part["type"].text();
  if (type == "Sequence")
    for (const Part& step : part["processors"].elements()) read_post_processor(step, file);
  else if (type == "TemplateProcessing")
    read_template(part, file);
  else
    part["type"].require_only("ByteLevel");  // which only moves offsets
}

}  // namespace

TokenizerFile parse_tokenizer(std::string_view text, const std::string& where) {
  check_nesting(where, text);
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  check<FileError>(root.is_object() && root.contains("model"), "{}: must be a JSON object with a model", where);
  const auto at = [&](const char* key) {
    static const json none;
    return Part(root.contains(key) ? root[key] : none, where + ": " + key);
  };
  TokenizerFile file;
  file.budget = Budget(text.size());
  const Vocabulary vocabulary = read_model(at("model"), file);
  read_added_tokens(at("added_tokens"), vocabulary, file);
  if (const Part normalizer = at("normalizer"); !normalizer.is_null()) {
    normalizer["type"].require(normalizer["type"].value() == "NFC", "must be \"NFC\", the only supported one,");
    file.nfc = true;
  }
  read_pre_tokenizers(at("pre_tokenizer"), file);
  read_post_processor(at("post_processor"), file);
  if (const Part decoder = at("decoder"); !decoder.is_null()) decoder["type"].require_only("ByteLevel");
  return file;
}

}  // namespace braid::nn::detail
