#include <braid/core/strided.h>

#include <algorithm>
#include <cstring>

#include <braid/core/parallel.h>

namespace braid {
namespace {

constexpr std::int64_t kBlock = 16384;  // elements

/// The view with neighbouring axes that step evenly merged, so that inner loops are as long as can be.
struct Walk {
  int rank = 0;
  Strides sizes{}, strides{};

  Walk(const Shape& shape, const Strides& view_strides) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t size = shape[axis], stride = view_strides[static_cast<std::size_t>(axis)];
      if (size == 1) continue;
      if (rank > 0 && last(strides) == size * stride) {
        last(sizes) *= size;
        last(strides) = stride;
      } else {
        sizes[static_cast<std::size_t>(rank)] = size;
        strides[static_cast<std::size_t>(rank)] = stride;
        ++rank;
      }
    }
    if (rank == 0) {
      rank = 1;
      sizes[0] = 1;
    }
  }

  std::int64_t& last(Strides& values) { return values[static_cast<std::size_t>(rank - 1)]; }
};

template <class Word>
void gather(const Word* view, const Walk& walk, std::int64_t begin, std::int64_t end, Word* out) {
  const auto inner = static_cast<std::size_t>(walk.rank - 1);
  Strides index{};
  std::int64_t offset = 0;
  for (std::size_t axis = inner + 1, rest = static_cast<std::size_t>(begin); axis-- > 0;) {
    index[axis] = static_cast<std::int64_t>(rest) % walk.sizes[axis];
    rest /= static_cast<std::size_t>(walk.sizes[axis]);
    offset += index[axis] * walk.strides[axis];
  }
  const std::int64_t step = walk.strides[inner];
  while (begin < end) {
    const std::int64_t run = std::min(end - begin, walk.sizes[inner] - index[inner]);
    const Word* row = view + offset;
    if (step == 1)
      std::copy_n(row, run, out);
    else if (step == 0)
      std::fill_n(out, run, *row);
    else
      for (std::int64_t i = 0; i < run; ++i) out[i] = row[i * step];
    out += run;
    begin += run;
    offset -= index[inner] * step;
    index[inner] = 0;
    for (std::size_t axis = inner; axis-- > 0;) {
      offset += walk.strides[axis];
      if (++index[axis] < walk.sizes[axis]) break;
      offset -= walk.sizes[axis] * walk.strides[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

void gather_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item,
                    std::int64_t begin, std::int64_t end, std::byte* out) {
  if (begin >= end) return;
  const Walk walk(shape, strides);
  if (item == sizeof(std::uint32_t))
    gather(reinterpret_cast<const std::uint32_t*>(view), walk, begin, end, reinterpret_cast<std::uint32_t*>(out));
  else
    gather(reinterpret_cast<const std::uint64_t*>(view), walk, begin, end, reinterpret_cast<std::uint64_t*>(out));
}

void copy_strided(const std::byte* view, const Strides& strides, const Shape& shape, std::size_t item, std::byte* out) {
  parallel_for(shape.numel(), kBlock, [&](std::int64_t begin, std::int64_t end) {
    gather_strided(view, strides, shape, item, begin, end, out + static_cast<std::size_t>(begin) * item);
  });
}

}  // namespace braid
