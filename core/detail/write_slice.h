#pragma once
#include <braid/core/tensor.h>

namespace braid {

/// Copies `part` to the positions [begin, begin + part.size(axis)) of an axis of `out`, which is contiguous and
/// unshared. All other axes have the same sizes, and so have the dtypes.
void write_slice(Tensor& out, int axis, std::int64_t begin, const Tensor& part);

}  // namespace braid
