#pragma once
#include <string>
#include <string_view>

namespace braid::generate {

/// Passes on a text that comes in pieces, up to the first occurrence of a stop text.
class StopText {
 public:
  /// An empty `stop` never stops it.
  explicit StopText(std::string stop) : stop_(std::move(stop)) {}

  /// The text that can be written after this piece: all but an end that may begin the stop text.
  std::string push(std::string_view piece);
  /// The end that was held back, once no more pieces come.
  std::string finish();
  bool reached() const { return reached_; }

 private:
  std::string stop_, held_;
  bool reached_ = false;
};

}  // namespace braid::generate
