#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace braid::stability {

/// Parses a file. Throws FileError when it cannot be read, ValueError `file: line 3: ...` when it is not TOML
/// or nests deeper than kMaxNesting.
toml::table read_toml(const std::string& file);

/// Reads a table strictly: every key has a type and a range, no key is left over.
/// Throws ValueError `file: table.key: expected an integer from 1 to 64, got "four"`.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string file, std::string path = "");

  bool has(std::string_view key) const { return table_.contains(key); }

  std::int64_t integer(const std::string& key, std::int64_t low, std::int64_t high);
  /// A number, which may be an integer.
  double number(const std::string& key, double low, double high);
  /// The index of the value in `names`.
  std::size_t choice(const std::string& key, std::span<const std::string_view> names);

  // Lists of these: at least one element, all different.
  std::vector<std::int64_t> integers(const std::string& key, std::int64_t low, std::int64_t high);
  std::vector<double> numbers(const std::string& key, double low, double high);
  std::vector<std::size_t> choices(const std::string& key, std::span<const std::string_view> names);

  TableReader table(const std::string& key);

  /// Call when all keys have been read: throws ValueError if there is another key.
  void finish() const;

  /// Throws ValueError `file: table.key: expected ..., got ...`.
  [[noreturn]] void fail(const std::string& key, const std::string& expected, const std::string& got) const;

 private:
  /// The value under `key`, which counts as read; null when there is none.
  const toml::node* find(const std::string& key);
  template <class Read>
  auto list(const std::string& key, const std::string& expected, Read read);

  const toml::table& table_;
  std::string file_, path_;
  std::vector<std::string> known_;
};

}  // namespace braid::stability
