#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <braid/core/bfloat16.h>
#include <braid/core/error.h>

namespace braid {

/// Element types: f32 for training, f64 for verification, i32 for ids, bf16 for activations in half the memory.
enum class DType : std::uint8_t { f32, f64, i32, bf16 };

/// `f32`, `f64`, `i32`, `bf16`.
constexpr std::string_view name(DType dtype) {
  return std::array<std::string_view, 4>{"f32", "f64", "i32", "bf16"}[static_cast<std::size_t>(dtype)];
}
/// Bytes per element.
constexpr std::size_t size_of(DType dtype) { return dtype == DType::f64 ? 8 : dtype == DType::bf16 ? 2 : 4; }

/// The dtype whose elements are T.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, bfloat16>) return DType::bf16;
}

/// The dtype of arithmetic on elements of `dtype`, and of the parameters beside such activations: f32 for bf16.
constexpr DType compute_dtype(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

/// Throws DTypeError naming `op` for i32.
inline void check_floating(const char* op, DType dtype) {
  check_dtype(dtype != DType::i32, "{}: expected a floating-point tensor but has dtype {}", op, name(dtype));
}

/// Calls `f(T{})` with the type of `dtype`, f32 or f64; throws DTypeError naming `op` for another.
decltype(auto) dispatch_float(const char* op, DType dtype, auto&& f) {
  if (dtype == DType::f32) return f(float{});
  check_floating(op, dtype);
  check_dtype(dtype != DType::bf16, "{}: bf16 is not supported here; cast to f32", op);
  return f(double{});
}

/// The same for ops that support bf16, which compute in Compute<T>.
decltype(auto) dispatch_float_or_bf16(const char* op, DType dtype, auto&& f) {
  if (dtype == DType::bf16) return f(bfloat16{});
  return dispatch_float(op, dtype, f);
}

/// Calls `f(T{})` with the type of `dtype`.
decltype(auto) dispatch(DType dtype, auto&& f) {
  if (dtype == DType::i32) return f(std::int32_t{});
  return dispatch_float_or_bf16("dispatch", dtype, f);
}

}  // namespace braid
