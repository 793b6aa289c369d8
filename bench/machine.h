#pragma once
#include <cstdint>

namespace braid::bench {

/// What the machine gives at best, measured in this run: the yardsticks of the other numbers.
struct Machine {
  double flops;       ///< f32 multiply-adds on num_threads() threads, two operations each, per second
  double copy_bytes;  ///< read and written per second by copying 64 MiB on num_threads() threads
};

/// Measured at the first call.
const Machine& machine();

}  // namespace braid::bench
