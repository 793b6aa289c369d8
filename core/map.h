#pragma once
#include <array>
#include <cstdint>
#include <span>

#include <braid/core/tensor.h>

namespace braid {

/// Computes `n` elements: reads contiguous `in[i]`, writes contiguous `out`.
struct MapKernel {
  void* callable;
  void (*call)(void* callable, const std::byte* const* in, std::byte* out, std::int64_t n);
};

/// Broadcasts `inputs` against each other and runs `kernel` over blocks of the result by all threads.
/// Inputs that are not contiguous reach the kernel through small buffers that stay in cache.
/// Throws ShapeError or DTypeError naming `op` when shapes do not broadcast or dtypes differ.
Tensor map_blocks(const char* op, std::span<const Tensor* const> inputs, MapKernel kernel);

namespace detail {

template <class T, class F, std::size_t... I>
void map_loop(F& f, const std::byte* const* in, std::byte* out, std::int64_t n, std::index_sequence<I...>) {
  const std::array<const T*, sizeof...(I)> x{reinterpret_cast<const T*>(in[I])...};
  T* y = reinterpret_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[I][i]...);
}

template <class T, class Kernel, std::size_t... I>
void call_chunk(Kernel& kernel, const std::byte* const* in, std::byte* out, std::int64_t n, std::index_sequence<I...>) {
  kernel(reinterpret_cast<const T*>(in[I])..., reinterpret_cast<T*>(out), n);
}

}  // namespace detail

/// Like map, for a kernel that computes contiguous chunks: `kernel(const T* in..., T* out, std::int64_t n)`.
template <class Kernel, class... Inputs>
Tensor map_chunks(const char* op, Kernel kernel, const Tensor& first, const Inputs&... rest) {
  const std::array<const Tensor*, 1 + sizeof...(rest)> inputs{&first, &rest...};
  return dispatch_float(op, first.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return map_blocks(op, inputs, {&kernel, [](void* k, const std::byte* const* in, std::byte* out, std::int64_t n) {
                                     detail::call_chunk<T>(*static_cast<Kernel*>(k), in, out, n,
                                                           std::make_index_sequence<1 + sizeof...(rest)>());
                                   }});
  });
}

/// `y = f(inputs...)` element by element, with broadcasting, for floating-point tensors of one dtype.
/// f is called with floats or doubles and must be pure: `map("mul", [](auto a, auto b) { return a * b; }, a, b)`.
template <class F, class... Inputs>
Tensor map(const char* op, F f, const Tensor& first, const Inputs&... rest) {
  const std::array<const Tensor*, 1 + sizeof...(rest)> inputs{&first, &rest...};
  return dispatch_float(op, first.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return map_blocks(op, inputs, {&f, [](void* g, const std::byte* const* in, std::byte* out, std::int64_t n) {
                                     detail::map_loop<T>(*static_cast<F*>(g), in, out, n,
                                                         std::make_index_sequence<1 + sizeof...(rest)>());
                                   }});
  });
}

}  // namespace braid
