#include <braid/core/detail/indexing.h>

#include <algorithm>
#include <vector>

#include <braid/core/parallel.h>

namespace braid::kernels {
namespace {

constexpr std::int64_t kBlock = 16384;  // elements that a thread takes at a time

/// A contiguous tensor around an axis.
struct Around {
  std::int64_t outer, size, inner;

  Around(const Shape& shape, int axis)
      : outer(shape.axes(0, shape.index(axis)).numel()),
        size(shape[axis]),
        inner(shape.axes(shape.index(axis) + 1, shape.rank()).numel()) {}
};

/// Calls f(o, begin, end) for each outer index and strips [begin, end) of the inner ones, on all threads. Nobody else
/// works on a strip, so that sums along the axis have an order. `n` is how many positions f visits in each.
template <class F>
void for_each_strip(const Around& view, std::int64_t n, F f) {
  const std::int64_t width = std::min<std::int64_t>(64, std::max<std::int64_t>(1, view.inner));
  const std::int64_t strips = (view.inner + width - 1) / width;
  const std::int64_t block = std::max<std::int64_t>(1, kBlock / std::max<std::int64_t>(1, n * width));
  parallel_for(view.outer * strips, block, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = i % strips * width;
      f(i / strips, begin, std::min(begin + width, view.inner));
    }
  });
}

}  // namespace

void check_ids(const char* op, const Tensor& ids, std::int64_t size) {
  check_dtype(ids.dtype() == DType::i32, "{}: ids must have dtype i32 but have {}", op, name(ids.dtype()));
  const Tensor list = ids.contiguous();
  const std::int32_t *begin = list.data<std::int32_t>(), *end = begin + list.numel();
  const auto* bad = std::find_if(begin, end, [&](std::int32_t id) { return id < 0 || id >= size; });
  if (bad == end) return;
  std::vector<std::int64_t> at(static_cast<std::size_t>(ids.rank()));
  for (std::int64_t axis = ids.rank() - 1, rest = bad - begin; axis >= 0; --axis) {
    at[static_cast<std::size_t>(axis)] = rest % ids.size(static_cast<int>(axis));
    rest /= ids.size(static_cast<int>(axis));
  }
  check_value(false, "{}: ids must lie in [0, {}) but the one at {} is {}", op, size, Shape(at), *bad);
}

Tensor select_slices(const Tensor& x, int axis, const Tensor& ids) {
  const Tensor from = x.contiguous(), list = ids.contiguous();
  const std::int64_t n = ids.numel();
  const Around view(x.shape(), axis);
  Tensor y(x.shape().with(axis, n), x.dtype());
  const std::size_t bytes = static_cast<std::size_t>(view.inner) * size_of(x.dtype());
  std::byte* out = y.mutable_bytes();
  const std::int64_t block = std::max<std::int64_t>(1, kBlock / std::max<std::int64_t>(1, view.inner));
  parallel_for(view.outer * n, block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t slice = i / n * view.size + list.data<std::int32_t>()[i % n];
      std::copy_n(from.bytes() + static_cast<std::size_t>(slice) * bytes, bytes,
                  out + static_cast<std::size_t>(i) * bytes);
    }
  });
  return y;
}

void add_slices(Tensor& out, int axis, const Tensor& ids, const Tensor& src) {
  const Tensor from = src.contiguous(), list = ids.contiguous();
  const std::int64_t n = ids.numel();
  const Around view(out.shape(), axis);
  dispatch_float("add_slices", out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* sums = out.mutable_data<T>();
    for_each_strip(view, n, [&](std::int64_t o, std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = 0; j < n; ++j) {
        T* to = sums + (o * view.size + list.data<std::int32_t>()[j]) * view.inner;
        const T* term = from.data<T>() + (o * n + j) * view.inner;
        for (std::int64_t i = begin; i < end; ++i) to[i] += term[i];
      }
    });
  });
}

Tensor gather_elements(const Tensor& x, int axis, const Tensor& ids) {
  const Tensor from = x.contiguous(), list = ids.contiguous();
  const Around view(x.shape(), axis);
  const std::int64_t n = ids.size(axis);
  Tensor y(ids.shape(), x.dtype());
  dispatch_float("gather", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = y.mutable_data<T>();
    for_each_strip(view, n, [&](std::int64_t o, std::int64_t begin, std::int64_t end) {
      const T* slices = from.data<T>() + o * view.size * view.inner;
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t at = (o * n + j) * view.inner;
        const std::int32_t* id = list.data<std::int32_t>() + at;
        for (std::int64_t i = begin; i < end; ++i) out[at + i] = slices[id[i] * view.inner + i];
      }
    });
  });
  return y;
}

void add_elements(Tensor& out, int axis, const Tensor& ids, const Tensor& src) {
  const Tensor from = src.contiguous(), list = ids.contiguous();
  const Around view(out.shape(), axis);
  const std::int64_t n = ids.size(axis);
  dispatch_float("scatter_add", out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* sums = out.mutable_data<T>();
    for_each_strip(view, n, [&](std::int64_t o, std::int64_t begin, std::int64_t end) {
      T* slices = sums + o * view.size * view.inner;
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t at = (o * n + j) * view.inner;
        const std::int32_t* id = list.data<std::int32_t>() + at;
        for (std::int64_t i = begin; i < end; ++i) slices[id[i] * view.inner + i] += from.data<T>()[at + i];
      }
    });
  });
}

}  // namespace braid::kernels
