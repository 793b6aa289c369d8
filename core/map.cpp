#include <braid/core/map.h>

#include <algorithm>
#include <array>
#include <vector>

#include <braid/core/detail/strided.h>
#include <braid/core/parallel.h>

namespace braid {

constexpr std::int64_t kBlock = 8192;  // elements that a thread takes at a time
constexpr std::int64_t kChunk = 1024;  // elements of a buffer: 8 KB at most
constexpr std::size_t kMostInputs = 8;

Tensor map_blocks(const char* op, std::span<const Tensor* const> inputs, DType out_dtype, MapKernel kernel) {
  check<Error>(inputs.size() <= kMostInputs, "{}: at most {} inputs are supported but got {}", op, kMostInputs,
               inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check<Error>(inputs[i]->defined(), "{}: input {} is undefined", op, i);
  Shape shape = inputs[0]->shape();
  for (const Tensor* x : inputs.subspan(1)) {
    check_same_dtype(op, *inputs[0], *x);
    if (x->shape() != shape) shape = broadcast_shapes(op, shape, x->shape());
  }
  std::vector<Tensor> views;  // where the shapes differ
  if (!std::ranges::all_of(inputs, [&](const Tensor* x) { return x->shape() == shape; }))
    for (const Tensor* x : inputs) views.push_back(x->broadcast_to(shape));
  const auto input = [&](std::size_t k) -> const Tensor& { return views.empty() ? *inputs[k] : views[k]; };
  bool direct = true;
  for (std::size_t k = 0; k < inputs.size(); ++k) direct = direct && input(k).is_contiguous();

  Tensor y(shape, out_dtype);
  std::byte* out = y.mutable_bytes();
  const std::size_t item = size_of(inputs[0]->dtype()), out_item = size_of(out_dtype);
  parallel_for(shape.numel(), kBlock, [&](std::int64_t begin, std::int64_t end) {
    std::array<const std::byte*, kMostInputs> in;
    std::vector<std::byte> buffer(direct ? 0 : inputs.size() * kChunk * item);
    const std::int64_t chunk = direct ? end - begin : kChunk;
    for (std::int64_t i = begin; i < end; i += chunk) {
      const std::int64_t n = std::min(chunk, end - i);
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const Tensor& x = input(k);
        if (direct || x.is_contiguous()) {
          in[k] = x.bytes() + i * item;
        } else {
          std::byte* gathered = buffer.data() + k * kChunk * item;
          detail::gather_strided(x.bytes(), x.strides(), shape, item, i, i + n, gathered);
          in[k] = gathered;
        }
      }
      kernel.call(kernel.callable, in.data(), out + i * out_item, n);
    }
  });
  return y;
}

}  // namespace braid
