#pragma once
#include <cstdint>

namespace braid::kernels {

constexpr std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }
constexpr std::int64_t round_down(std::int64_t n, std::int64_t multiple) { return n / multiple * multiple; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return divide_up(n, multiple) * multiple; }

}  // namespace braid::kernels
