#include <braid/core/detail/indexing.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <braid/core/detail/strided.h>
#include <braid/core/map.h>
#include <braid/core/parallel.h>

namespace braid::detail {
namespace {

constexpr std::int64_t kBlock = 16384;  // elements that a thread takes at a time

/// The sizes of a tensor seen as [outer, size, inner] around an axis.
struct AxisSizes {
  std::int64_t outer, size, inner;

  AxisSizes(const Shape& shape, int axis)
      : outer(shape.axes(0, shape.index(axis)).numel()),
        size(shape[axis]),
        inner(shape.axes(shape.index(axis) + 1, shape.rank()).numel()) {}
};

/// Calls f(o, begin, end) for each outer index and strips [begin, end) of the inner ones, on all threads. One thread
/// works on a strip, so that sums along the axis have an order. f visits n positions of the axis.
void for_each_strip(const AxisSizes& sizes, std::int64_t n, auto f) {
  if (n == 0) return;  // sizes.outer may be 2^59
  const std::int64_t width = std::min<std::int64_t>(64, std::max<std::int64_t>(1, sizes.inner));
  const std::int64_t strips = (sizes.inner + width - 1) / width;
  parallel_for_each(sizes.outer * strips, n * width, kBlock, [&](std::int64_t i) {
    const std::int64_t begin = i % strips * width;
    f(i / strips, begin, std::min(begin + width, sizes.inner));
  });
}

/// Calls f(j, i) for each element j of ids, in order along the axis, where i is the element of a tensor of these sizes
/// that the id selects.
void for_each_id(const Tensor& ids, int axis, const AxisSizes& sizes, auto f) {
  const Tensor list = ids.contiguous();
  const std::int32_t* id = list.data<std::int32_t>();
  const std::int64_t n = ids.size(axis), inner = sizes.inner;
  for_each_strip(sizes, n, [&](std::int64_t o, std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = o * n * inner; j < (o + 1) * n * inner; j += inner)
      for (std::int64_t i = begin; i < end; ++i) f(j + i, (o * sizes.size + id[j + i]) * inner + i);
  });
}

/// Writes `from` over the elements of view(out), or adds it to them.
void put_into(Put put, Tensor& out, const View& view, const Tensor& from) {
  std::byte* const first = out.mutable_bytes();
  const Tensor part = view(out);
  const std::size_t item = size_of(out.dtype());
  parallel_for(part.numel(), kBlock, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::byte> gathered;
    const std::byte* x = from.bytes() + begin * item;
    if (!from.is_contiguous()) {
      gathered.resize((end - begin) * item);
      gather_strided(from.bytes(), from.strides(), from.shape(), item, begin, end, gathered.data());
      x = gathered.data();
    }
    put_strided(put, out.dtype(), x, begin, end, first + (part.bytes() - out.bytes()), part.strides(), part.shape());
  });
}

}  // namespace

Shape index_of(const Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.rank());
  for (int axis = shape.rank() - 1; axis >= 0; element /= shape[axis--]) index[axis] = element % shape[axis];
  return Shape(index);
}

void check_ids(const char* op, const Tensor& ids, std::int64_t low, std::int64_t high) {
  check_dtype(ids.dtype() == DType::i32, "{}: ids must have dtype i32 but have {}", op, name(ids.dtype()));
  const Tensor list = ids.contiguous();
  const std::int32_t *begin = list.data<std::int32_t>(), *end = begin + list.numel();
  const auto* bad = std::find_if(begin, end, [&](std::int32_t id) { return id < low || id >= high; });
  if (bad != end)
    throw ValueError(fmt::format("{}: ids must lie in [{}, {}) but the one at {} is {}", op, low, high,
                                 index_of(ids.shape(), bad - begin), *bad));
}

Tensor from_front(const char* op, const Tensor& ids, std::int64_t size) {
  if (size > std::numeric_limits<std::int32_t>::max()) return check_ids(op, ids, 0, size), ids;
  check_ids(op, ids, -size, size);
  auto counted = [n = static_cast<std::int32_t>(size)](std::int32_t id) { return id < 0 ? id + n : id; };
  return map_as<std::int32_t, std::int32_t>(op, counted, ids);
}

Tensor index_select(const Tensor& x, int axis, const Tensor& ids) {
  const Tensor from = x.contiguous(), list = ids.contiguous();
  const std::int64_t n = ids.numel();
  const AxisSizes sizes(x.shape(), axis);
  Tensor y(x.shape().with(axis, n), x.dtype());
  if (y.numel() == 0) return y;
  const std::size_t bytes = sizes.inner * size_of(x.dtype());
  std::byte* out = y.mutable_bytes();
  parallel_for_each(sizes.outer * n, sizes.inner, kBlock, [&](std::int64_t i) {
    const std::int64_t slice = i / n * sizes.size + list.data<std::int32_t>()[i % n];
    std::copy_n(from.bytes() + slice * bytes, bytes, out + i * bytes);
  });
  return y;
}

Tensor index_add(const Shape& shape, int axis, const Tensor& ids, const Tensor& src) {
  if (src.dtype() == DType::bf16) return index_add(shape, axis, ids, src.to(DType::f32)).to(DType::bf16);
  Tensor out = zeros(shape, src.dtype());
  const Tensor from = src.contiguous(), list = ids.contiguous();
  const std::int64_t n = ids.numel();
  const AxisSizes sizes(shape, axis);
  dispatch_float("index_add", out.dtype(), [&]<class T>(T) {
    T* sums = out.mutable_data<T>();
    for_each_strip(sizes, n, [&](std::int64_t o, std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = 0; j < n; ++j) {
        T* to = sums + (o * sizes.size + list.data<std::int32_t>()[j]) * sizes.inner;
        const T* term = from.data<T>() + (o * n + j) * sizes.inner;
        for (std::int64_t i = begin; i < end; ++i) to[i] += term[i];
      }
    });
  });
  return out;
}

Tensor gather(const Tensor& x, int axis, const Tensor& ids) {
  const Tensor from = x.contiguous();
  Tensor y(ids.shape(), x.dtype());
  dispatch(x.dtype(), [&]<class T>(T) {
    const T* in = from.data<T>();
    T* out = y.mutable_data<T>();
    for_each_id(ids, axis, AxisSizes(x.shape(), axis), [&](std::int64_t j, std::int64_t i) { out[j] = in[i]; });
  });
  return y;
}

Tensor scatter_add(Tensor out, int axis, const Tensor& ids, const Tensor& src) {
  if (out.dtype() == DType::bf16) return scatter_add(out.to(DType::f32), axis, ids, src.to(DType::f32)).to(DType::bf16);
  const Tensor from = src.contiguous();
  dispatch_float("scatter_add", out.dtype(), [&]<class T>(T) {
    const T* terms = from.data<T>();
    T* sums = out.mutable_data<T>();
    for_each_id(ids, axis, AxisSizes(out.shape(), axis), [&](std::int64_t j, std::int64_t i) { sums[i] += terms[j]; });
  });
  return out;
}

void write_slice(Tensor& out, int axis, std::int64_t begin, const Tensor& src) {
  write_view(
      out, [&](const Tensor& x) { return x.slice(axis, begin, begin + src.size(axis)); }, src);
}

void write_view(Tensor& out, const View& view, const Tensor& from) { put_into(Put::write, out, view, from); }

void add_to_view(Tensor& out, const View& view, const Tensor& from) { put_into(Put::add, out, view, from); }

}  // namespace braid::detail
