#include <braid/autograd/ops/concat.h>

#include <algorithm>

#include <braid/autograd/ops/reshape.h>
#include <braid/core/detail/indexing.h>

namespace braid {
namespace {

/// The sum of the parts' sizes along `axis`, all other sizes being the same.
Shape joined_shape(std::span<const Var> parts, int axis) {
  check_value(!parts.empty(), "concat: there must be at least one part");
  const Shape& first = parts.front().shape();
  std::int64_t size = 0;
  for (const Var& part : parts) {
    check_same_dtype("concat", parts.front().value(), part.value());
    check_shape(part.rank() == first.rank() && part.shape().with(axis, 0) == first.with(axis, 0),
                "concat: shapes {} and {} must differ in axis {} only", first, part.shape(), axis);
    size += part.size(axis);
  }
  return first.with(axis, size);
}

}  // namespace

Var concat(std::span<const Var> parts, int axis) {
  const Shape shape = joined_shape(parts, axis);
  Tensor y(shape, parts.front().dtype());
  std::vector<std::int64_t> bounds{0};  // part i has the positions [bounds[i], bounds[i + 1])
  for (const Var& part : parts) {
    detail::write_slice(y, axis, bounds.back(), part.value());
    bounds.push_back(bounds.back() + part.size(axis));
  }
  return record("concat", std::move(y), parts, [bounds, axis](const Tensor& dy) {
    std::vector<Tensor> dparts;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) dparts.push_back(dy.slice(axis, bounds[i], bounds[i + 1]));
    return dparts;
  });
}

Var stack(std::span<const Var> parts, int axis) {
  check_value(!parts.empty(), "stack: there must be at least one part");
  std::vector<Var> expanded;
  for (const Var& part : parts) {
    check_shape(part.shape() == parts.front().shape(), "stack: all parts must have shape {} but part {} has {}",
                parts.front().shape(), expanded.size(), part.shape());
    expanded.push_back(expand_dims(part, axis));
  }
  return concat(expanded, axis);
}

}  // namespace braid
