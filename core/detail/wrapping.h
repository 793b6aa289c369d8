#pragma once
#include <cstdint>
#include <type_traits>

namespace braid::detail {

/// Converts i32 to unsigned, whose sums, differences and products wrap around instead of overflowing; leaves floats as
/// they are.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::uint32_t>(x);
  else
    return x;
}

}  // namespace braid::detail
