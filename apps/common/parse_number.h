#pragma once
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>

namespace braid::apps {

/// The number that all of `text` spells in decimal digits; none for another text and for what T does not hold,
/// infinities and NaN included.
template <class T>
std::optional<T> parse_number(const std::string& text) {
  const char* const end = text.data() + text.size();
  T value{};
  if constexpr (std::is_floating_point_v<T>) {  // libc++ 19 has no std::from_chars for them
    if (text.empty() || text.front() == '+' || text.find_first_not_of("0123456789+-.eE") != text.npos) return {};
    char* stop = nullptr;
    value = std::strtod(text.c_str(), &stop);
    if (stop != end || !std::isfinite(value)) return {};
  } else {
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (stop != end || error != std::errc()) return {};
  }
  return value;
}

}  // namespace braid::apps
