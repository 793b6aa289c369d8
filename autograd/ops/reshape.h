#pragma once
#include <braid/autograd/tape.h>

namespace braid {

// Views of the same elements, row-major. All throw ShapeError when the shape does not fit.

/// The elements in another shape. Of sizes, in braces or a span, one may be -1 and is inferred.
Var reshape(const Var& x, const Shape& shape);
Var reshape(const Var& x, std::span<const std::int64_t> sizes);
inline Var reshape(const Var& x, std::initializer_list<std::int64_t> sizes) {
  return reshape(x, std::span(sizes.begin(), sizes.size()));
}
/// A new axis of size 1 before `axis`; -1 puts it last.
Var expand_dims(const Var& x, int axis);
/// Without `axis`, which must have size 1.
Var squeeze(const Var& x, int axis);

}  // namespace braid
