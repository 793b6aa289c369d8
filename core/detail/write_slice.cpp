#include <braid/core/detail/write_slice.h>

#include <algorithm>

#include <braid/core/detail/strided.h>
#include <braid/core/parallel.h>

namespace braid {

void write_slice(Tensor& out, int axis, std::int64_t begin, const Tensor& part) {
  const int i = part.shape().index(axis);
  const std::int64_t runs = part.shape().axes(0, i).numel();
  const std::int64_t inner = part.shape().axes(i + 1, part.rank()).numel();
  const std::int64_t run = part.size(i) * inner, pitch = out.size(i) * inner;  // elements
  if (run == 0) return;
  const std::size_t item = size_of(part.dtype());
  const bool contiguous = part.is_contiguous();
  std::byte* first = out.mutable_bytes() + static_cast<std::size_t>(begin * inner) * item;
  parallel_for(runs, std::max<std::int64_t>(1, 16384 / run), [&](std::int64_t run_begin, std::int64_t run_end) {
    for (std::int64_t r = run_begin; r < run_end; ++r) {
      std::byte* to = first + static_cast<std::size_t>(r * pitch) * item;
      if (contiguous)
        std::copy_n(part.bytes() + static_cast<std::size_t>(r * run) * item, static_cast<std::size_t>(run) * item, to);
      else
        gather_strided(part.bytes(), part.strides(), part.shape(), item, r * run, (r + 1) * run, to);
    }
  });
}

}  // namespace braid
