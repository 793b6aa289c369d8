#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `parts` one after the other along an axis. Throws ShapeError unless the other axes have the same sizes, DTypeError
/// unless the dtypes are the same, ValueError when there are no parts.
Var concat(List<Var> parts, int axis);

/// `parts` of one shape along a new axis, placed before `axis`; -1 puts it last. Throws as concat() does.
Var stack(List<Var> parts, int axis);

}  // namespace braid
