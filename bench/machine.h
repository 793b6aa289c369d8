#pragma once
#include <cstdint>

namespace braid::bench {

/// What the machine gives at best, measured in this run: the yardsticks of the other numbers.
struct Machine {
  double flops;              ///< f32 multiply-adds on num_threads() threads, two operations each, per second
  double flops_f64;          ///< f64 ones
  double copy_bytes;         ///< read and written per second by copying past all caches on num_threads() threads
  std::int64_t cache_bytes;  ///< in use, read or written: from here on copying is as slow as copy_bytes
};

/// Measured at the first call.
const Machine& machine();

/// Copy bandwidth of memory as it is now, of one copy: on a shared machine it changes by the second.
double copy_bytes_now();

}  // namespace braid::bench
