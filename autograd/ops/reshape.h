#pragma once
#include <braid/autograd/tape.h>

namespace braid {

// Views of the same elements, row-major. All throw ShapeError when the shape does not fit.

/// The elements in another shape, of which one size may be -1 and is inferred.
inline Var reshape(const Var& x, List<std::int64_t> sizes) { return x.reshape(sizes); }
/// A new axis of size 1 before `axis`; -1 puts it last.
inline Var expand_dims(const Var& x, int axis) { return x.expand_dims(axis); }
/// Without `axis`, which must have size 1.
inline Var squeeze(const Var& x, int axis) { return x.squeeze(axis); }

}  // namespace braid
