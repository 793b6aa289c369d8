#pragma once
#include <braid/core/tensor.h>

namespace braid::kernels {

// Reads and sums at ids along an axis. Tensors are floating point, ids i32 in range, `out` is contiguous and unshared.
// Sums are added in the order of the ids, whatever the number of threads.

/// Throws DTypeError unless ids are i32, ValueError unless they lie in [0, size); messages name `op`.
void check_ids(const char* op, const Tensor& ids, std::int64_t size);

/// x [outer..., size, inner...], ids [n] -> [outer..., n, inner...]
Tensor select_slices(const Tensor& x, int axis, const Tensor& ids);
/// `out[.., ids[j], ..] += src[.., j, ..]`: the vjp of select_slices.
void add_slices(Tensor& out, int axis, const Tensor& ids, const Tensor& src);

/// `y[.., j, ..] = x[.., ids[.., j, ..], ..]`: an id for each element; y has the shape of ids.
Tensor gather_elements(const Tensor& x, int axis, const Tensor& ids);
/// `out[.., ids[.., j, ..], ..] += src[.., j, ..]`: the vjp of gather_elements.
void add_elements(Tensor& out, int axis, const Tensor& ids, const Tensor& src);

}  // namespace braid::kernels
