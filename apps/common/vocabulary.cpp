#include "vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include <fmt/format.h>

#include <braid/core/error.h>
#include <braid/core/utf8.h>

#include "parse_number.h"
#include "read_file.h"

namespace braid::apps {
namespace {

/// Code points of UTF-8 text.
std::u32string code_points(std::string_view text, std::string_view what) {
  std::u32string points;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_code_point(text, at);
    check_value(point.has_value(), "{}: must be UTF-8 but no character starts at offset {} with byte 0x{:02X}", what,
                at, static_cast<unsigned char>(text[at]));
    points.push_back(*point);
  }
  return points;
}

std::string utf8(std::u32string_view points) {
  std::string text;
  for (const char32_t point : points) append_utf8(text, point);
  return text;
}

/// `'é' (U+00E9)`, of control characters `U+0009` alone.
std::string described(char32_t point) {
  const std::string code = fmt::format("U+{:04X}", static_cast<std::uint32_t>(point));
  const bool is_control = point < 0x20 || (point >= 0x7F && point < 0xA0);
  return is_control ? code : fmt::format("'{}' ({})", utf8({&point, 1}), code);
}

}  // namespace

Vocabulary Vocabulary::of_characters(std::string_view text, std::string_view what) {
  Vocabulary vocabulary;
  std::u32string& characters = vocabulary.characters_ = code_points(text, what);
  std::ranges::sort(characters);
  characters.erase(std::ranges::unique(characters).begin(), characters.end());
  vocabulary.unit_ = "characters";
  vocabulary.size_ = std::ssize(characters);
  return vocabulary;
}

Vocabulary Vocabulary::of_tokenizer(const std::filesystem::path& file) {
  Vocabulary vocabulary;
  vocabulary.tokenizer_json_ = read_file(file);
  vocabulary.tokenizer_ = nn::Tokenizer::parse(vocabulary.tokenizer_json_, file.string());
  vocabulary.size_ = vocabulary.tokenizer_->vocab();
  return vocabulary;
}

Vocabulary Vocabulary::of_numbers(std::int64_t size) {
  Vocabulary vocabulary;
  vocabulary.size_ = size;
  return vocabulary;
}

std::int64_t Vocabulary::size() const { return size_; }

std::vector<std::int32_t> Vocabulary::encode(std::string_view text, std::string_view what,
                                             bool add_special_tokens) const {
  const std::u32string points = code_points(text, what);  // throws unless it is UTF-8
  if (tokenizer_) return tokenizer_->encode(text, {.add_special_tokens = add_special_tokens});
  std::vector<std::int32_t> ids;
  if (characters_.empty()) {
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
      const auto id = parse_number<std::int32_t>(word);
      check_value(id && *id >= 0 && *id < size_,
                  "{}: must be ids from 0 to {} with blanks between, for the model has no tokenizer, but has '{}'",
                  what, size_ - 1, excerpt(word));
      ids.push_back(*id);
    }
    return ids;
  }
  for (const char32_t& point : points) {
    const auto found = std::ranges::lower_bound(characters_, point);
    if (found == characters_.end() || *found != point)
      throw ValueError(fmt::format("{}: {} in line {} is none of the {} characters of the model", what,
                                   described(point), 1 + std::count(points.data(), &point, U'\n'), size_));
    ids.push_back(static_cast<std::int32_t>(found - characters_.begin()));
  }
  return ids;
}

std::string Vocabulary::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (tokenizer_)
      text += tokenizer_->token(id).value_or("\uFFFD");
    else if (characters_.empty())
      text += std::to_string(id) + " ";
    else
      append_utf8(text, characters_[static_cast<std::size_t>(id)]);
  }
  return text;
}

std::int32_t Vocabulary::start() const {
  const auto line_break = std::ranges::lower_bound(characters_, U'\n');
  if (line_break != characters_.end() && *line_break == U'\n')
    return static_cast<std::int32_t>(line_break - characters_.begin());
  return tokenizer_ ? eos().value_or(tokenizer_->id("\n").value_or(0)) : 0;
}

std::optional<std::int32_t> Vocabulary::eos() const { return tokenizer_ ? tokenizer_->eos() : std::nullopt; }

std::string Vocabulary::alphabet() const { return utf8(characters_); }

}  // namespace braid::apps
