#pragma once
#include <bit>
#include <cstdint>

namespace braid::detail {

/// The value of a half, as if its bits were those of an f32 whose exponent is 112 too low; infinities and NaN have the
/// largest exponent.
inline float from_f16(std::uint16_t half) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fff) << 13;
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const std::uint32_t bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : scaled;
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(half & 0x8000) << 16);
}

}  // namespace braid::detail
