#pragma once
#include <braid/autograd/tape.h>
#include <braid/core/detail/indexing.h>

namespace braid::detail {

/// Records `view(x)`. The cotangents of all views of x add in place to one gradient: T positions of a loop cost O(T).
Var record_view(const char* op, const Var& x, View view);

}  // namespace braid::detail
