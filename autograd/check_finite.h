#pragma once
#include <braid/core/error.h>

namespace braid {

/// While one is alive, the first op of this thread that produces NaN or Inf, forward or backward, throws
/// NonFiniteError naming the op and its input shapes.
class CheckFinite {
 public:
  CheckFinite();
  ~CheckFinite();
  CheckFinite(const CheckFinite&) = delete;
  CheckFinite& operator=(const CheckFinite&) = delete;

  static bool active();  ///< whether one is alive on this thread
};

/// Thrown when CheckFinite finds a NaN or an infinity.
struct NonFiniteError : Error {
  using Error::Error;
};

}  // namespace braid
