#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace braid {

/// The upper half of a float: its range with 8 significant bits. For storage: it converts to float, which computes, and
/// back by rounding to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;  ///< sign, 8 bits of exponent, 7 of fraction

  bfloat16() = default;
  explicit bfloat16(float x) : bits(round(std::bit_cast<std::uint32_t>(x))) {}
  /// Rounds once: by way of a float whose last bit is set where it is not exact.
  explicit bfloat16(double x) : bfloat16(to_odd(x)) {}
  explicit bfloat16(std::int32_t x) : bfloat16(static_cast<double>(x)) {}
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }  ///< exact

 private:
  static std::uint16_t round(std::uint32_t x) {
    const bool nan = (x & 0x7fffffff) > 0x7f800000;
    return static_cast<std::uint16_t>((nan ? x | 0x400000 : x + 0x7fff + (x >> 16 & 1)) >> 16);
  }
  static float to_odd(double x) {
    const auto nearest = static_cast<float>(x);
    if (nearest == x || !std::isfinite(nearest)) return nearest;
    const auto bits = std::bit_cast<std::uint32_t>(nearest) - (std::abs(nearest) > std::abs(x) ? 1 : 0);
    return std::bit_cast<float>(bits | 1);
  }
};

/// What arithmetic on elements of type T computes in: float for bfloat16, T itself else.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

}  // namespace braid

template <>
struct std::numeric_limits<braid::bfloat16> : std::numeric_limits<float> {
  static constexpr int digits = 8;
  static constexpr float epsilon() { return 0x1p-7F; }
  static constexpr float max() { return 0x1.fep127F; }
  static constexpr float lowest() { return -max(); }
};
