#pragma once
#include <initializer_list>
#include <span>

#include <braid/autograd/tape.h>

namespace braid {

/// `parts` one after the other along an axis. Throws ShapeError unless the other axes have the same sizes, DTypeError
/// unless the dtypes are the same, ValueError when there are no parts.
Var concat(std::span<const Var> parts, int axis);
inline Var concat(std::initializer_list<Var> parts, int axis) { return concat(std::span(parts), axis); }

/// `parts` of one shape along a new axis, placed before `axis`; -1 puts it last. Throws as concat() does.
Var stack(std::span<const Var> parts, int axis);
inline Var stack(std::initializer_list<Var> parts, int axis) { return stack(std::span(parts), axis); }

}  // namespace braid
