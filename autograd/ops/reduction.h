#pragma once
#include <cstdint>

namespace braid {

/// How a loss reduces the losses of elements or rows. The mean of no losses is 0.
enum class Reduction : std::uint8_t {
  mean,        ///< their mean
  sum,         ///< their sum
  none,        ///< no reduction
  batch_mean,  ///< the sum divided by the size of the first axis
};

}  // namespace braid
