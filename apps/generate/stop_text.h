#pragma once
#include <string>
#include <string_view>

namespace braid::generate {

/// Lets a text that comes in pieces through, up to the first place where it has another one.
class StopText {
 public:
  /// Nothing stops it when `stop` is empty.
  explicit StopText(std::string stop) : stop_(std::move(stop)) {}

  /// What may be told with this piece: all but the end that may begin the stop text.
  std::string push(std::string_view piece);
  /// What was held back for the stop text, which did not come.
  std::string finish();
  bool reached() const { return reached_; }

 private:
  std::string stop_, held_;
  bool reached_ = false;
};

}  // namespace braid::generate
