#pragma once
#include <cstdint>

namespace braid::kernels {

/// y[i] = the upper 24 bits of the first word of Philox4x32-10 for (key, draw, first + i), times 2^-24. Has the same
/// bits on all instruction sets.
using UniformKernel = void (*)(std::uint64_t key, std::uint64_t draw, std::uint64_t first, std::int64_t n, float* y);

UniformKernel uniform_kernel();

}  // namespace braid::kernels
