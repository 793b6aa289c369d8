#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace braid::nn::detail {

/// A regular expression that cuts texts into words, as tokenizers write them: in Oniguruma's syntax with Unicode
/// classes, of which it takes the part that PCRE2 reads alike.
class Pattern {
 public:
  /// Throws ValueError when it is none, has an escape or a bracket that the two read differently, or matches nothing at
  /// all.
  explicit Pattern(const std::string& expression);

  /// Calls `use` on every match and on all that stands between matches, in order. `text` must be UTF-8.
  void split(std::string_view text, const std::function<void(std::string_view)>& use) const;

 private:
  std::shared_ptr<const void> code_;
};

}  // namespace braid::nn::detail
