#include <braid/autograd/ops/split.h>

#include <algorithm>

#include <fmt/ranges.h>

#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/slice.h>
#include <braid/core/detail/indexing.h>

namespace braid {

/// The parts of x between consecutive `bounds` of an axis.
static std::vector<Var> cut(const char* op, const Var& x, int axis, const std::vector<std::int64_t>& bounds) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) parts.push_back(x.value().slice(axis, bounds[i], bounds[i + 1]));
  const auto vjp = [shape = x.shape(), dtype = x.dtype(), axis, bounds](std::span<Tensor> dys, const Needs&) {
    Tensor dx = std::ranges::all_of(dys, &Tensor::defined) ? Tensor(shape, dtype) : zeros(shape, dtype);
    for (std::size_t i = 0; i < dys.size(); ++i)
      if (dys[i].defined()) detail::write_slice(dx, axis, bounds[i], dys[i]);
    return std::vector{dx};
  };
  const auto rule = [axis](const Applied& at) {
    std::vector<Var> dys(at.dys.begin(), at.dys.end());
    for (std::size_t i = 0; i < dys.size(); ++i)
      if (!dys[i].value().defined()) dys[i] = zeros(at.outputs[i].shape(), at.outputs[i].dtype());
    return std::vector{concat(dys, axis)};
  };
  return record(op, std::move(parts), {x}, vjp, {}, rule);
}

std::vector<Var> split(const Var& x, int axis, List<std::int64_t> sizes) {
  const std::int64_t size = x.shape()[x.shape().index(axis, "split")];
  std::vector<std::int64_t> bounds{0};
  for (const std::int64_t part : sizes)
    if (0 <= part && part <= size - bounds.back()) bounds.push_back(bounds.back() + part);
  check_shape(bounds.size() == sizes.size() + 1 && bounds.back() == size,
              "split: sizes [{}] must add up to that of axis {} of x {}", fmt::join(sizes, ", "), axis, x.shape());
  return cut("split", x, axis, bounds);
}

std::vector<Var> chunk(const Var& x, int axis, std::int64_t count) {
  const std::int64_t size = x.shape()[x.shape().index(axis, "chunk")];
  check_value(count > 0, "chunk: count must be positive but is {}", count);
  check_shape(size % count == 0, "chunk: axis {} of x {} has no {} parts of one size", axis, x.shape(), count);
  std::vector<std::int64_t> bounds{0};
  while (std::ssize(bounds) <= count) bounds.push_back(bounds.back() + size / count);
  return cut("chunk", x, axis, bounds);
}

std::vector<Var> unbind(const Var& x, int axis) {
  const std::int64_t size = x.shape()[x.shape().index(axis, "unbind")];
  std::vector<Var> parts;
  for (std::int64_t i = 0; i < size; ++i) parts.push_back(select(x, axis, i));
  return parts;
}

}  // namespace braid
