#pragma once
#include <array>
#include <cstdint>
#include <span>

#include <braid/core/tensor.h>

namespace braid {

/// A function that computes elements of map_blocks.
struct MapKernel {
  void* callable;  ///< the first argument of `call`
  /// Computes n elements: reads contiguous in[i], writes contiguous out.
  void (*call)(void* callable, const std::byte* const* in, std::byte* out, std::int64_t n);
};

/// Broadcasts `inputs` against each other and runs `kernel` on blocks of the result, of dtype `out`, on all threads.
/// Inputs that are not contiguous are copied to small buffers that stay in cache. Throws ShapeError if shapes do not
/// broadcast, DTypeError if dtypes differ, Error for an undefined input or more than 8; messages name `op`.
Tensor map_blocks(const char* op, std::span<const Tensor* const> inputs, DType out, MapKernel kernel);

namespace detail {

/// map for a kernel that computes n contiguous elements: `kernel(const T* in..., Y* out, std::int64_t n)`.
template <class T, class Y, class Kernel, class... Inputs>
Tensor map_chunks_as(const char* op, Kernel kernel, const Inputs&... inputs) {
  const std::array<const Tensor*, sizeof...(inputs)> all{&inputs...};
  return map_blocks(op, all, dtype_of<Y>(),
                    {&kernel, [](void* k, const std::byte* const* in, std::byte* out, std::int64_t n) {
                       [&]<std::size_t... I>(std::index_sequence<I...>) {
                         (*static_cast<Kernel*>(k))(reinterpret_cast<const T*>(in[I])..., reinterpret_cast<Y*>(out), n);
                       }(std::index_sequence_for<Inputs...>());
                     }});
}

/// map for inputs of type T and results of type Y.
template <class T, class Y, class F, class... Inputs>
Tensor map_as(const char* op, F& f, const Inputs&... inputs) {
  const auto each = [&](const std::conditional_t<true, T, Inputs>*... x, Y* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(static_cast<Compute<T>>(x[i])...));
  };
  return map_chunks_as<T, Y>(op, each, inputs...);
}

}  // namespace detail

/// Like map(), for floats with broadcasting, for a kernel that computes n contiguous elements:
/// `kernel(const T* in..., T* out, std::int64_t n)`.
Tensor map_chunks(const char* op, auto kernel, const Tensor& first, const auto&... rest) {
  return dispatch_float_or_bf16(op, first.dtype(),
                                [&]<class T>(T) { return detail::map_chunks_as<T, T>(op, kernel, first, rest...); });
}

/// `y = f(inputs...)` element by element, with broadcasting, for floating-point tensors of one dtype:
/// `map("mul", [](auto a, auto b) { return a * b; }, a, b)`. f must be pure; it takes doubles, or floats for f32 and
/// bf16, and what it returns is converted. Throws as map_blocks() does, and DTypeError for i32.
Tensor map(const char* op, auto f, const Tensor& first, const auto&... rest) {
  return dispatch_float_or_bf16(op, first.dtype(),
                                [&]<class T>(T) { return detail::map_as<T, T>(op, f, first, rest...); });
}

/// Like map(), with broadcasting, for tensors of any dtype: f also takes i32.
Tensor map_any(const char* op, auto f, const Tensor& first, const auto&... rest) {
  return dispatch(first.dtype(), [&]<class T>(T) { return detail::map_as<T, T>(op, f, first, rest...); });
}

/// An i32 tensor that is 1 where `f(inputs...)` is true and 0 elsewhere, with broadcasting, for tensors of any dtype.
Tensor map_truth(const char* op, auto f, const Tensor& first, const auto&... rest) {
  return dispatch(first.dtype(), [&]<class T>(T) { return detail::map_as<T, std::int32_t>(op, f, first, rest...); });
}

}  // namespace braid
