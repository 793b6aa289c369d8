#pragma once
#include <braid/core/error.h>
#include <braid/core/scope.h>

namespace braid {

/// While one is alive, the first op of this thread that produces NaN or Inf, forward or backward, throws
/// NonFiniteError naming the op and its input shapes.
class CheckFinite : public Scope<CheckFinite> {};

/// Thrown when CheckFinite finds a NaN or an infinity.
struct NonFiniteError : Error {
  using Error::Error;
};

}  // namespace braid
