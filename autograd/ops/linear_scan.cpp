#include <braid/autograd/ops/linear_scan.h>

#include <algorithm>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/pad.h>
#include <braid/autograd/ops/slice.h>
#include <braid/core/parallel.h>

namespace braid {
namespace {

/// a and b of one shape -> h, from the front or from the back. Elements behind the axis are lanes of vectors; lanes are
/// cut among the threads.
Tensor recurrence(const Tensor& a, const Tensor& b, int axis, bool from_the_back) {
  const Shape& shape = b.shape();
  const std::int64_t steps = shape[axis], lanes = shape.axes(axis + 1, shape.rank()).numel();
  Tensor h(shape, b.dtype());
  if (h.numel() == 0) return h;
  dispatch_float("linear_scan", b.dtype(), [&]<class T>(T) {
    const Tensor decay = a.contiguous(), input = b.contiguous();
    const T *at = decay.data<T>(), *bt = input.data<T>();
    T* ht = h.mutable_data<T>();
    const std::int64_t block = std::clamp<std::int64_t>(16384 / steps, 16, lanes + 15);
    const std::int64_t blocks = (lanes + block - 1) / block;
    parallel_for(h.numel() / steps / lanes * blocks, 1, [&](std::int64_t i, std::int64_t) {
      const std::int64_t first = i / blocks * steps * lanes + i % blocks * block;
      const std::int64_t width = std::min(block, lanes - i % blocks * block);
      for (std::int64_t step = 0; step < steps; ++step) {
        const std::int64_t row = first + (from_the_back ? steps - 1 - step : step) * lanes;
        const T* before = ht + row + (from_the_back ? lanes : -lanes);
        for (std::int64_t j = row; j < row + width; ++j) ht[j] = step == 0 ? bt[j] : at[j] * before[j - row] + bt[j];
      }
    });
  });
  return h;
}

/// x moved by one position along the axis, with zeros behind it.
Var moved(const Var& x, int axis, bool to_the_front) {
  const std::int64_t n = x.size(axis), rest = std::max<std::int64_t>(n - 1, 0);
  if (to_the_front) return pad(slice(x, axis, n - rest, n), axis, 0, n - rest);
  return pad(slice(x, axis, 0, rest), axis, n - rest, 0);
}

Var scan(const Var& a, const Var& b, int axis, bool from_the_back);

/// g = the scan of dy from the other end, db = g, da = g h before it.
std::vector<Var> vjp(const Var& dy, const Var& a, const Var& h, int axis, bool from_the_back, const Needs& needs) {
  const Var g = scan(moved(a, axis, !from_the_back), dy, axis, !from_the_back);
  return {needs[0] ? g * moved(h, axis, from_the_back) : Var(), g};
}

Var scan(const Var& a, const Var& b, int axis, bool from_the_back) {
  const Tensor h = recurrence(a.value(), b.value(), axis, from_the_back);
  return record(
      "linear_scan", h, {a, b},
      [=, a = a.value()](const Tensor& dy, const Needs& needs) { return vjp(dy, a, h, axis, from_the_back, needs); },
      [=](const Applied& op) { return vjp(op.dy(), op.x(0), op.y(), axis, from_the_back, op.needs); });
}

}  // namespace

Var linear_scan(const Var& a, const Var& b, int axis) {
  if (b.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& input, const Var& decay) { return linear_scan(decay, input, axis); }, b, a);
  check_floating("linear_scan", b.dtype());
  check_same_dtype("linear_scan", a.value(), b.value());
  const Shape shape = broadcast_shapes("linear_scan", a.shape(), b.shape());
  return scan(broadcast_to(a, shape), broadcast_to(b, shape), shape.index(axis, "linear_scan"), false);
}

}  // namespace braid
