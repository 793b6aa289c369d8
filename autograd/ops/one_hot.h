#pragma once
#include <braid/core/tensor.h>

namespace braid {

/// 1 at each id and 0 elsewhere along a new last axis: ids [...] i32 -> [..., classes]. Throws DTypeError unless ids
/// are i32, ValueError naming the first id that is not in [0, classes), ShapeError when ids already have the most axes.
Tensor one_hot(const Tensor& ids, std::int64_t classes, DType dtype = DType::f32);

}  // namespace braid
