#pragma once
#include <cstdint>

namespace braid::kernels {

/// y[i] = the upper 24 bits of the first word that Philox4x32-10 makes of (key, draw, first + i), over 2^24. By the
/// best instruction set of this processor, with the same bits on all.
using UniformKernel = void (*)(std::uint64_t key, std::uint64_t draw, std::uint64_t first, std::int64_t n, float* y);

UniformKernel uniform_kernel();

}  // namespace braid::kernels
