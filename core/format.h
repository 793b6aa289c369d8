#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

#include <fmt/format.h>

#include <braid/core/tensor.h>

namespace braid {

/// Options of to_string for tensors.
struct FormatOptions {
  int precision = 4;              ///< the largest number of digits after the point
  std::int64_t edge_items = 3;    ///< elements shown at each end of an axis if summarized
  std::int64_t threshold = 1000;  ///< tensors with more elements are summarized
  int line_width = 75;            ///< characters per line
};

/// A tensor as numpy prints it, followed by its dtype and, unless the brackets show it, its shape:
///
///     [[ 1.   -0.25]
///      [ 3.    4.  ]] f32
///
/// Notation is scientific if a number is at least 1e8 or below 1e-4, or they span more than a factor of 1000.
/// Throws ValueError unless precision is in [0, 17], edge_items and threshold are >= 0.
std::string to_string(const Tensor& tensor, const FormatOptions& options = {});
/// `f32`, ..: name(dtype), which fmt prints.
inline std::string to_string(DType dtype) { return std::string(name(dtype)); }

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace braid

template <>
struct fmt::formatter<braid::Tensor> : braid::detail::TextFormatter<braid::Tensor> {};
template <>
struct fmt::formatter<braid::DType> : braid::detail::TextFormatter<braid::DType> {};
