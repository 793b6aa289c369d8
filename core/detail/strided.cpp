#include <braid/core/detail/strided.h>

#include <algorithm>
#include <type_traits>

#include <braid/core/kernels/elements.h>
#include <braid/core/parallel.h>

namespace braid::detail {
namespace {

constexpr std::int64_t kBlock = 16384;  // elements

/// The sizes and strides of a view; axes that step evenly are coalesced, which makes inner loops long.
struct Layout {
  int rank = 1;
  Strides sizes{1}, strides{};

  Layout(const Shape& shape, const Strides& view_strides) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t size = shape[axis], stride = view_strides[axis];
      if (size == 1) continue;
      if (last(sizes) == 1 || last(strides) == size * stride) {
        last(sizes) *= size;
        last(strides) = stride;
      } else {
        sizes[rank] = size;
        strides[rank] = stride;
        ++rank;
      }
    }
  }

  std::int64_t& last(Strides& values) { return values[rank - 1]; }
  std::int64_t inner_stride() const { return strides[rank - 1]; }
};

/// Calls f(offset, run) for the runs along the last axis that make up elements [begin, end), counted row-major.
void for_each_run(const Layout& layout, std::int64_t begin, std::int64_t end, auto f) {
  const int inner = layout.rank - 1;
  Strides index{};
  std::int64_t offset = 0, rest = begin;
  for (int axis = inner; axis >= 0; rest /= layout.sizes[axis], --axis) {
    index[axis] = rest % layout.sizes[axis];
    offset += index[axis] * layout.strides[axis];
  }
  while (begin < end) {
    const std::int64_t run = std::min(end - begin, layout.sizes[inner] - index[inner]);
    f(offset, run);
    begin += run;
    offset -= index[inner] * layout.strides[inner];
    index[inner] = 0;
    for (int axis = inner - 1; axis >= 0; --axis) {
      offset += layout.strides[axis];
      if (++index[axis] < layout.sizes[axis]) break;
      offset -= layout.sizes[axis] * layout.strides[axis];
      index[axis] = 0;
    }
  }
}

void gather(const auto* view, const Layout& layout, std::int64_t begin, std::int64_t end, auto* out) {
  const std::int64_t step = layout.inner_stride();
  for_each_run(layout, begin, end, [&](std::int64_t offset, std::int64_t run) {
    const auto* row = view + offset;
    if (step == 1)
      std::copy_n(row, run, out);
    else if (step == 0)
      std::fill_n(out, run, *row);
    else
      for (std::int64_t i = 0; i < run; ++i) out[i] = row[i * step];
    out += run;
  });
}

constexpr std::int64_t kTile = 16;  // a cache line of 4-byte elements

/// out[j * out_step + i] = in[i * in_step + j] for i < columns, j < rows, at most a tile. A buffer lets each cache line
/// of both sides be used at once: steps are often powers of two, which share few cache sets.
template <class Word>
void copy_tile(const Word* in, std::int64_t in_step, std::int64_t rows, std::int64_t columns, Word* out,
               std::int64_t out_step) {
  Word tile[kTile][kTile];
  for (std::int64_t i = 0; i < columns; ++i)
    for (std::int64_t j = 0; j < rows; ++j) tile[j][i] = in[i * in_step + j];
  for (std::int64_t j = 0; j < rows; ++j) std::copy_n(tile[j], columns, out + j * out_step);
}

/// Copies a view whose axis `unit` has step 1 but is not the last, in strips of kTile rows along that axis.
void transpose(const auto* view, const Layout& layout, int unit, auto* out) {
  const int inner = layout.rank - 1;
  const Shape shape(std::span(layout.sizes.begin(), layout.rank));
  const Strides out_strides = contiguous_strides(shape);
  const std::int64_t rows = layout.sizes[unit], columns = layout.sizes[inner], strips = (rows + kTile - 1) / kTile;
  parallel_for_each(shape.numel() / (rows * columns) * strips, kTile * columns, kBlock, [&](std::int64_t strip) {
    const std::int64_t first = strip % strips * kTile;
    const auto* from = view + first;
    auto* to = out + first * out_strides[unit];
    std::int64_t rest = strip / strips;
    for (int axis = inner - 1; axis >= 0; --axis) {
      if (axis == unit) continue;
      from += rest % layout.sizes[axis] * layout.strides[axis];
      to += rest % layout.sizes[axis] * out_strides[axis];
      rest /= layout.sizes[axis];
    }
    for (std::int64_t i = 0; i < columns; i += kTile)
      copy_tile(from + i * layout.strides[inner], layout.strides[inner], std::min(kTile, rows - first),
                std::min(kTile, columns - i), to + i, out_strides[unit]);
  });
}

/// y += x
template <class T>
void add(const T* x, T* y, std::int64_t n) {
  if constexpr (std::is_same_v<T, bfloat16>)
    kernels::element_kernels().add(x, y, n);
  else
    for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

/// Calls f with the bytes as words of the size of an element.
void with_words(const std::byte* view, std::byte* out, std::size_t item, auto f) {
  if (item == sizeof(std::uint16_t))
    f(reinterpret_cast<const std::uint16_t*>(view), reinterpret_cast<std::uint16_t*>(out));
  else if (item == sizeof(std::uint32_t))
    f(reinterpret_cast<const std::uint32_t*>(view), reinterpret_cast<std::uint32_t*>(out));
  else
    f(reinterpret_cast<const std::uint64_t*>(view), reinterpret_cast<std::uint64_t*>(out));
}

}  // namespace

void gather_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item,
                    std::int64_t begin, std::int64_t end, std::byte* out) {
  const Layout layout(shape, strides);
  with_words(view, out, item, [&](const auto* from, auto* to) { gather(from, layout, begin, end, to); });
}

void copy_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item, std::byte* out) {
  if (shape.numel() == 0) return;
  const Layout layout(shape, strides);
  const auto* first = layout.strides.begin();
  const int last = layout.rank - 1, unit = static_cast<int>(std::find(first, first + last, 1) - first);
  if (unit < last && layout.strides[last] != 1)
    return with_words(view, out, item, [&](const auto* from, auto* to) { transpose(from, layout, unit, to); });
  parallel_for(shape.numel(), kBlock, [&](std::int64_t begin, std::int64_t end) {
    gather_strided(view, strides, shape, item, begin, end, out + begin * item);
  });
}

void put_strided(Put put, DType dtype, const std::byte* from, std::int64_t begin, std::int64_t end, std::byte* view,
                 const Strides& strides, const Shape& shape) {
  const Layout layout(shape, strides);
  const std::int64_t step = layout.inner_stride();
  dispatch(dtype, [&]<class T>(T) {
    const T* x = reinterpret_cast<const T*>(from);
    for_each_run(layout, begin, end, [&](std::int64_t offset, std::int64_t run) {
      T* row = reinterpret_cast<T*>(view) + offset;
      if (put == Put::write && step == 1)
        std::copy_n(x, run, row);
      else if (put == Put::write)
        for (std::int64_t i = 0; i < run; ++i) row[i * step] = x[i];
      else if (step == 1)
        add(x, row, run);
      else
        for (std::int64_t i = 0; i < run; ++i) row[i * step] = static_cast<T>(row[i * step] + x[i]);
      x += run;
    });
  });
}

}  // namespace braid::detail
