#pragma once
#include <functional>

#include <braid/core/tensor.h>

namespace braid::detail {

// Reads, writes and sums along one axis. `out` is contiguous and unshared; ids are i32 and in range, see check_ids.
// Sums are of floating-point tensors, in the order of the ids for any number of threads.

/// The index of an element of a row-major tensor: [1, 2] for element 6 of [3, 4].
Shape index_of(const Shape& shape, std::int64_t element);

/// Throws DTypeError unless ids are i32, ValueError unless they lie in [low, high); messages name `op`.
void check_ids(const char* op, const Tensor& ids, std::int64_t low, std::int64_t high);

/// The ids in [0, size) for ids in [-size, size), of which negative ones count from the end. Throws as check_ids.
Tensor from_front(const char* op, const Tensor& ids, std::int64_t size);

/// x [outer..., size, inner...], ids [n] -> [outer..., n, inner...]
Tensor index_select(const Tensor& x, int axis, const Tensor& ids);
/// Zeros of a shape, to which `out[.., ids[j], ..] += src[.., j, ..]`: the vjp of index_select.
Tensor index_add(const Shape& shape, int axis, const Tensor& ids, const Tensor& src);

/// `y[.., j, ..] = x[.., ids[.., j, ..], ..]`: one id per element; y has the shape of ids.
Tensor gather(const Tensor& x, int axis, const Tensor& ids);
/// `out` after `out[.., ids[.., j, ..], ..] += src[.., j, ..]`: the vjp of gather.
Tensor scatter_add(Tensor out, int axis, const Tensor& ids, const Tensor& src);

/// `out[.., begin + j, ..] = src[.., j, ..]` for all positions j of src; other sizes and the dtype are equal.
void write_slice(Tensor& out, int axis, std::int64_t begin, const Tensor& src);

/// Maps a tensor to a view of some of its elements, each at most once.
using View = std::function<Tensor(const Tensor&)>;

/// `view(out) = from` in place, for tensors of one dtype, of which `out` is contiguous and unshared.
void write_view(Tensor& out, const View& view, const Tensor& from);
/// `view(out) += from`, likewise, for floating-point tensors.
void add_to_view(Tensor& out, const View& view, const Tensor& from);

}  // namespace braid::detail
