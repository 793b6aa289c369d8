#include <algorithm>
#include <numeric>
#include <vector>

#include <braid/core/tensor.h>

namespace braid {

/// Replaces a single -1 by the size that the elements leave for it.
static Shape infer_sizes(const Shape& from, List<std::int64_t> sizes) {
  std::vector<std::int64_t> result(sizes.begin(), sizes.end());
  const auto unknown = std::ranges::find(result, -1);
  if (unknown != result.end()) {
    *unknown = 1;
    const std::int64_t known = Shape(result, "reshape").numel();
    check_shape(known > 0 && from.numel() % known == 0,
                "reshape: no size for the axis given as -1 fits {} elements into {}", from.numel(), Shape(result));
    *unknown = from.numel() / known;
  }
  const Shape shape(result, "reshape");
  check_shape(shape.numel() == from.numel(), "reshape: {} elements of shape {} do not fit into shape {}", from.numel(),
              from, shape);
  return shape;
}

Tensor Tensor::view(const Shape& shape, const Strides& strides, std::int64_t offset) const {
  check<Error>(defined(), "a view of an undefined tensor");
  Tensor t = *this;
  t.shape_ = shape;
  t.strides_ = strides;
  t.offset_ = offset;
  return t;
}

Tensor Tensor::permute(List<int> axes) const {
  check_shape(static_cast<int>(axes.size()) == rank(), "permute: expected {} axes for shape {} but got {}", rank(),
              shape_, axes.size());
  std::vector<std::int64_t> sizes;
  Strides strides{};
  std::vector<bool> seen(axes.size());
  for (const int given : axes) {
    const int axis = shape_.index(given, "permute");
    check_shape(!seen[axis], "permute: axis {} of shape {} is given twice", axis, shape_);
    seen[axis] = true;
    strides[sizes.size()] = strides_[axis];
    sizes.push_back(shape_[axis]);
  }
  return view(Shape(sizes), strides, offset_);
}

Tensor Tensor::transpose(int axis_a, int axis_b) const {
  std::vector<int> axes(rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[shape_.index(axis_a, "transpose")], axes[shape_.index(axis_b, "transpose")]);
  return permute(axes);
}

Tensor Tensor::slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step) const {
  const int i = shape_.index(axis, "slice");
  const std::int64_t size = shape_[i], first = begin < 0 ? begin + size : begin, last = end < 0 ? end + size : end;
  check_value(step != 0, "slice: step must not be 0");
  check_shape(step > 0 ? 0 <= first && first <= last && last <= size : -1 <= last && last <= first && first < size,
              "slice: [{}, {}){} is not inside axis {} of shape {}", begin, end,
              step == 1 ? "" : fmt::format(" by {}", step), axis, shape_);
  if (first == last) return view(shape_.with(i, 0), strides_, offset_);
  step = std::clamp(step, -size, size);  // a longer step leaves only `first`, too
  Strides strides = strides_;
  strides[i] *= step;
  return view(shape_.with(i, (last - first - (step > 0 ? 1 : -1)) / step + 1), strides, offset_ + first * strides_[i]);
}

Tensor Tensor::select(int axis, std::int64_t position) const {
  const int i = shape_.index(axis, "select");
  check_shape(-shape_[i] <= position && position < shape_[i], "select: x {} has no position {} on axis {}", shape_,
              position, axis);
  const std::int64_t first = position < 0 ? position + shape_[i] : position;
  return slice(i, first, first + 1).squeeze(i);
}

Tensor Tensor::broadcast_to(const Shape& shape) const {
  if (shape == shape_) return view(shape, strides_, offset_);
  const int added = shape.rank() - rank();
  check_shape(added >= 0, "broadcast_to: shape {} does not broadcast to {}", shape_, shape);
  Strides strides{};
  for (int i = 0; i < rank(); ++i) {
    check_shape(shape_[i] == shape[i + added] || shape_[i] == 1, "broadcast_to: shape {} does not broadcast to {}",
                shape_, shape);
    strides[i + added] = shape_[i] == 1 ? 0 : strides_[i];
  }
  return view(shape, strides, offset_);
}

Tensor Tensor::expand_dims(int axis) const {
  const int i = axis < 0 ? axis + rank() + 1 : axis;
  check_shape(0 <= i && i <= rank(), "expand_dims: shape {} has no place {} for an axis", shape_, axis);
  check_shape(rank() < Shape::kMaxRank, "expand_dims: x {} has {} axes already", shape_, rank());
  const Shape shape = shape_.inserted(i, 1);
  Strides strides = strides_;
  for (int later = rank(); later > i; --later) strides[later] = strides[later - 1];
  strides[i] = 0;
  return view(shape, strides, offset_);
}

Tensor Tensor::squeeze(int axis) const {
  const int i = shape_.index(axis, "squeeze");
  check_shape(shape_[i] == 1, "squeeze: axis {} of shape {} must have size 1", axis, shape_);
  Strides strides = strides_;
  for (int later = i + 1; later < rank(); ++later) strides[later - 1] = strides[later];
  return view(shape_.without(i), strides, offset_);
}

/// The strides of these elements as `shape`; nullopt unless every run of new axes covers old axes without gaps.
std::optional<Strides> Tensor::strides_for(const Shape& shape) const {
  if (is_contiguous()) return contiguous_strides(shape);
  Strides strides{};
  int from = rank() - 1;
  std::int64_t block = 1;  // elements of new axes in the current run of old axes
  std::int64_t run = 1, step = 0;
  for (int to = shape.rank() - 1; to >= 0; --to) {
    if (shape[to] == 1) continue;
    if (block == run) {
      while (from >= 0 && shape_[from] == 1) --from;
      step = strides_[from];
      run = shape_[from];
      for (--from; from >= 0 && (shape_[from] == 1 || strides_[from] == step * run); --from) run *= shape_[from];
      block = 1;
    }
    strides[to] = step * block;
    block *= shape[to];
    if (block > run || run % block != 0) return std::nullopt;
  }
  return strides;
}

Tensor Tensor::reshape(List<std::int64_t> sizes) const {
  const Shape shape = infer_sizes(shape_, sizes);
  if (const auto strides = strides_for(shape)) return view(shape, *strides, offset_);
  return clone().view(shape, contiguous_strides(shape), 0);
}

}  // namespace braid
