#pragma once
#include <cstdint>

#include <braid/core/dtype.h>

namespace braid::bench {

/// The limits of the machine, measured in this run, to which other results are compared.
struct Machine {
  double flops;              ///< f32 multiply-adds on num_threads() threads, two operations each, per second
  double flops_f64;          ///< f64 ones
  double flops_bf16;         ///< bf16 ones by AMX or AVX512_BF16; equals flops without either
  double copy_bytes;         ///< read and written per second by copying past all caches on num_threads() threads
  std::int64_t cache_bytes;  ///< read or written: above this size copying is as slow as copy_bytes

  /// Multiply-adds of a dtype.
  double flops_of(DType dtype) const {
    return dtype == DType::f64 ? flops_f64 : dtype == DType::bf16 ? flops_bf16 : flops;
  }
};

/// Measured at the first call.
const Machine& machine();

/// Measures again, and returns the best so far of each limit: other load on the machine only lowers them.
const Machine& machine_again();

/// The current copy bandwidth of memory, of one copy: on a shared machine it changes within seconds.
double copy_bytes_now();

}  // namespace braid::bench
