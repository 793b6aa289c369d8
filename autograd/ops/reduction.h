#pragma once
#include <cstdint>

namespace braid {

/// What becomes of the losses of single elements or rows. The mean of none is 0.
enum class Reduction : std::uint8_t {
  mean,        ///< their mean
  sum,         ///< their sum
  none,        ///< they stay apart
  batch_mean,  ///< the sum divided by the size of the first axis
};

}  // namespace braid
