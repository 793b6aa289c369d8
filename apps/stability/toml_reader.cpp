#include "toml_reader.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/ranges.h>

#include <braid/core/error.h>
#include <braid/core/files/budget.h>

#include "../common/read_file.h"

namespace braid::stability {
namespace {

/// A value as an error message shows it, on one line.
std::string shown(const toml::node* node) {
  if (!node) return "nothing";
  if (node->is_table()) return "a table";
  if (node->is_array()) return "a list";
  std::ostringstream text;
  node->visit([&](const auto& value) { text << value; });
  return text.str();
}

std::string integer_in(std::int64_t low, std::int64_t high) {
  return fmt::format("an integer from {} to {}", low, high);
}
std::string number_in(double low, double high) { return fmt::format("a number from {} to {}", low, high); }
std::string one_of(std::span<const std::string_view> names) { return fmt::format("one of {}", fmt::join(names, ", ")); }

std::optional<std::int64_t> as_integer(const toml::node* node, std::int64_t low, std::int64_t high) {
  const auto value = node ? node->value_exact<std::int64_t>() : std::nullopt;
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<double> as_number(const toml::node* node, double low, double high) {
  const auto value = node && node->is_number() ? node->value<double>() : std::nullopt;
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<std::size_t> as_choice(const toml::node* node, std::span<const std::string_view> names) {
  const auto value = node ? node->value_exact<std::string>() : std::nullopt;
  const auto found = value ? std::ranges::find(names, *value) : names.end();
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

/// Past the end of the string that starts at `at`, or at the end of its line or of the text if it does not end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at).starts_with(three);
  for (at += is_long ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (is_long && text.substr(at).starts_with(three)) {
      for (at += 3; at < text.size() && text[at] == quote; ++at) {
      }  // the last of the string itself
      return at;
    } else if (!is_long && (text[at] == quote || text[at] == '\n')) {
      return at + (text[at] == quote ? 1 : 0);
    }
  }
  return text.size();
}

/// Refuses what check_nesting refuses of JSON, dotted keys included: toml++ recurses, and releases, as deep.
void check_toml_nesting(const std::string& file, std::string_view text) {
  std::vector<std::size_t> open{0};  // the depth inside of each open bracket
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '[' || c == '{') open.push_back(++depth);
    if ((c == ']' || c == '}') && open.size() > 1) open.pop_back();
    if (c == '.')
      ++depth;
    else if (c == ',' || c == '\n')
      depth = open.back();
    if (depth > kMaxNesting)
      throw ValueError(fmt::format("{}: line {}: expected keys and brackets at most {} deep, got deeper ones", file,
                                   1 + std::ranges::count(text.substr(0, at), '\n'), kMaxNesting));
    at = c == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
  }
}

}  // namespace

toml::table read_toml(const std::string& file) {
  const std::string text = apps::read_file(file);
  const auto other = std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  check_value(other == text.end(), "{}: line {}: expected ASCII", file, 1 + std::count(text.begin(), other, '\n'));
  check_toml_nesting(file, text);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string why(error.description());
    std::ranges::replace(why, '\n', ' ');
    throw ValueError(fmt::format("{}: line {}: expected TOML, got: {}", file, error.source().begin.line, why));
  }
}

TableReader::TableReader(const toml::table& table, std::string file, std::string path)
    : table_(table), file_(std::move(file)), path_(std::move(path)) {}

const toml::node* TableReader::find(const std::string& key) {
  known_.push_back(key);
  return table_.get(key);
}

void TableReader::fail(const std::string& key, const std::string& expected, const std::string& got) const {
  throw ValueError(fmt::format("{}: {}{}: expected {}, got {}", file_, path_, key, expected, got));
}

std::int64_t TableReader::integer(const std::string& key, std::int64_t low, std::int64_t high) {
  const toml::node* node = find(key);
  if (const auto value = as_integer(node, low, high)) return *value;
  fail(key, integer_in(low, high), shown(node));
}

double TableReader::number(const std::string& key, double low, double high) {
  const toml::node* node = find(key);
  if (const auto value = as_number(node, low, high)) return *value;
  fail(key, number_in(low, high), shown(node));
}

std::size_t TableReader::choice(const std::string& key, std::span<const std::string_view> names) {
  const toml::node* node = find(key);
  if (const auto value = as_choice(node, names)) return *value;
  fail(key, one_of(names), shown(node));
}

template <class Read>
auto TableReader::list(const std::string& key, const std::string& expected, Read read) {
  const toml::node* node = find(key);
  const toml::array* array = node ? node->as_array() : nullptr;
  if (!array) fail(key, fmt::format("a list, each {}", expected), shown(node));
  if (array->empty()) fail(key, fmt::format("a list, each {}", expected), "an empty list");
  constexpr std::size_t kMost = 1000;
  if (array->size() > kMost) fail(key, fmt::format("at most {} values", kMost), std::to_string(array->size()));
  std::vector<typename decltype(read(node))::value_type> values;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const std::string element = fmt::format("{}[{}]", key, i);
    const auto value = read(array->get(i));
    if (!value) fail(element, expected, shown(array->get(i)));
    if (std::ranges::count(values, *value) > 0) fail(element, "no value twice", shown(array->get(i)));
    values.push_back(*value);
  }
  return values;
}

std::vector<std::int64_t> TableReader::integers(const std::string& key, std::int64_t low, std::int64_t high) {
  return list(key, integer_in(low, high), [=](const toml::node* node) { return as_integer(node, low, high); });
}

std::vector<double> TableReader::numbers(const std::string& key, double low, double high) {
  return list(key, number_in(low, high), [=](const toml::node* node) { return as_number(node, low, high); });
}

std::vector<std::size_t> TableReader::choices(const std::string& key, std::span<const std::string_view> names) {
  return list(key, one_of(names), [=](const toml::node* node) { return as_choice(node, names); });
}

TableReader TableReader::table(const std::string& key) {
  const toml::node* node = find(key);
  if (!node || !node->is_table()) fail(key, "a table", shown(node));
  return {*node->as_table(), file_, path_ + key + "."};
}

void TableReader::finish() const {
  for (const auto& [key, value] : table_)
    if (std::ranges::count(known_, key.str()) == 0)
      fail(std::string(key.str()), fmt::format("one of the keys {}", fmt::join(known_, ", ")), "an unknown key");
}

}  // namespace braid::stability
