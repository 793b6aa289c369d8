#pragma once
#include <cstdint>
#include <type_traits>

namespace braid::detail {

/// An i32 as unsigned: sums, differences and products of these wrap around where those of i32 would overflow. A
/// floating-point number as it is.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::uint32_t>(x);
  else
    return x;
}

}  // namespace braid::detail
