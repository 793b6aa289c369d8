#include <braid/autograd/ops/concat.h>

#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/slice.h>
#include <braid/core/detail/indexing.h>

namespace braid {

static Var join(const char* op, std::span<const Var> parts, int axis) {
  const Shape& first = parts.front().shape();
  first.index(axis, op, "the first part");
  std::vector<std::int64_t> bounds{0};  // part i has the positions [bounds[i], bounds[i + 1])
  for (const Var& part : parts) {
    check_same_dtype(op, parts.front().value(), part.value());
    check_shape(part.rank() == first.rank() && part.shape().with(axis, 0) == first.with(axis, 0),
                "{}: shapes {} and {} must differ in axis {} only", op, first, part.shape(), axis);
    bounds.push_back(bounds.back() + part.size(axis));
  }
  Tensor y(first.with(axis, bounds.back()), parts.front().dtype());
  for (std::size_t i = 0; i < parts.size(); ++i) detail::write_slice(y, axis, bounds[i], parts[i].value());
  return record(op, std::move(y), parts, [bounds, axis](const Var& dy) {
    std::vector<Var> dparts;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) dparts.push_back(slice(dy, axis, bounds[i], bounds[i + 1]));
    return dparts;
  });
}

Var concat(List<Var> parts, int axis) {
  check_value(!parts.empty(), "concat: there must be at least one part");
  return join("concat", parts, axis);
}

Var stack(List<Var> parts, int axis) {
  check_value(!parts.empty(), "stack: there must be at least one part");
  const Shape& shape = parts.front().shape();
  check_shape(-shape.rank() <= axis + 1 && axis <= shape.rank(), "stack: shape {} has no place {} for an axis", shape,
              axis);
  check_shape(shape.rank() < Shape::kMaxRank, "stack: shape {} has {} axes already", shape, shape.rank());
  std::vector<Var> expanded;
  for (const Var& part : parts) {
    check_shape(part.shape() == shape, "stack: all parts must have shape {} but part {} has {}", shape, expanded.size(),
                part.shape());
    expanded.push_back(expand_dims(part, axis));
  }
  return join("stack", expanded, axis);
}

}  // namespace braid
