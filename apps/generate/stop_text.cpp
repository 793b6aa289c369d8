#include "stop_text.h"

#include <algorithm>
#include <utility>

namespace braid::generate {

std::string StopText::push(std::string_view piece) {
  if (reached_) return "";
  held_ += piece;
  const std::size_t found = stop_.empty() ? held_.npos : held_.find(stop_);
  reached_ = found != held_.npos;
  if (reached_) return held_.substr(0, found);
  std::size_t kept = stop_.empty() ? 0 : std::min(stop_.size() - 1, held_.size());
  while (kept > 0 && !stop_.starts_with(std::string_view(held_).substr(held_.size() - kept))) --kept;
  std::string told = held_.substr(0, held_.size() - kept);
  held_.erase(0, told.size());
  return told;
}

std::string StopText::finish() { return reached_ ? "" : std::exchange(held_, ""); }

}  // namespace braid::generate
