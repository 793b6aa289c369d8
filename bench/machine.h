#pragma once
#include <cstdint>

#include <braid/core/dtype.h>

namespace braid::bench {

/// What the machine gives at best, measured in this run: the yardsticks of the other numbers.
struct Machine {
  double flops;              ///< f32 multiply-adds on num_threads() threads, two operations each, per second
  double flops_f64;          ///< f64 ones
  double flops_bf16;         ///< those of bf16 by AMX or AVX512_BF16; f32's where there is neither
  double copy_bytes;         ///< read and written per second by copying past all caches on num_threads() threads
  std::int64_t cache_bytes;  ///< in use, read or written: from here on copying is as slow as copy_bytes

  /// Multiply-adds of a dtype.
  double flops_of(DType dtype) const {
    return dtype == DType::f64 ? flops_f64 : dtype == DType::bf16 ? flops_bf16 : flops;
  }
};

/// Measured at the first call.
const Machine& machine();

/// Copy bandwidth of memory as it is now, of one copy: on a shared machine it changes by the second.
double copy_bytes_now();

}  // namespace braid::bench
