#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <braid/core/files/budget.h>

namespace braid::nn::detail {

/// A regular expression that splits texts into words, in the syntax of tokenizer files: Oniguruma's with Unicode
/// classes, restricted to what PCRE2 reads alike.
class Pattern {
 public:
  /// Throws ValueError when the expression is malformed, has an escape or a bracket that the two libraries read
  /// differently, or matches the empty text.
  explicit Pattern(const std::string& expression);

  /// Calls `use` on every match and on the text between matches, in order. `text` must be UTF-8. Throws ValueError when
  /// matching takes more steps than `work` has.
  void split(std::string_view text, Budget& work, const std::function<void(std::string_view)>& use) const;

 private:
  std::shared_ptr<const void> quick_, counting_;
};

}  // namespace braid::nn::detail
