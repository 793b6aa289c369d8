#pragma once
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/ranges.h>

#include <braid/core/error.h>

namespace braid::detail {

/// The enumerator whose value is the position of `name` in `names`. Throws ValueError that starts with `what` if it is
/// not there.
template <class Enum, std::size_t N>
Enum enum_named(std::string_view what, const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  check_value(found != names.end(), "{} must be one of {} but is '{}'", what, fmt::join(names, ", "), name);
  return static_cast<Enum>(found - names.begin());
}

}  // namespace braid::detail
