#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

#include <braid/core/tensor.h>

namespace braid {

/// How a tensor is printed.
struct FormatOptions {
  int precision = 4;              ///< most digits after the point
  std::int64_t edge_items = 3;    ///< elements shown at each end of an axis when summarised
  std::int64_t threshold = 1000;  ///< tensors with more elements are summarised
  int line_width = 75;            ///< characters, after which a row goes on in the next line
};

/// A tensor as numpy prints it, followed by its dtype and, where the brackets do not tell, its shape:
///
///     [[ 1.   -0.25]
///      [ 3.    4.  ]] f32
///
/// Numbers go to scientific notation from 1e8, below 1e-4 and when they span more than a factor of 1000.
/// Throws ValueError unless precision is in [0, 17], edge_items and threshold are >= 0.
std::string to_string(const Tensor& tensor, const FormatOptions& options = {});

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace braid

template <>
struct fmt::formatter<braid::Tensor> : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const braid::Tensor& tensor, fmt::format_context& context) const;
};
