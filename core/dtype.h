#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <braid/core/error.h>

namespace braid {

/// Element types: f32 for training, f64 for verification, i32 for ids.
enum class DType : std::uint8_t { f32, f64, i32 };

std::string_view name(DType dtype);
std::size_t size_of(DType dtype);

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
}

/// Throws DTypeError naming `op` for i32.
inline void check_floating(const char* op, DType dtype) {
  check_dtype(dtype != DType::i32, "{}: expected a floating-point tensor but has dtype {}", op, name(dtype));
}

/// Calls `f(T{})` with the floating-point type of `dtype`; throws DTypeError naming `op` for i32.
/// The one place to extend when a floating-point type is added.
template <class F>
decltype(auto) dispatch_float(const char* op, DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  check_floating(op, dtype);
  return f(double{});
}

/// Calls `f(T{})` with the type of `dtype`.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  if (dtype == DType::i32) return f(std::int32_t{});
  return dispatch_float("dispatch", dtype, f);
}

}  // namespace braid
