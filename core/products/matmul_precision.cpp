#include <braid/core/products/matmul_precision.h>

#include <array>
#include <atomic>

#include <braid/core/detail/enum_named.h>
#include <braid/core/products/gemm.h>

namespace braid {
namespace {

constexpr std::array<std::string_view, 3> kNames{"highest", "high", "medium"};
std::atomic<MatmulPrecision> allowed = MatmulPrecision::highest;

}  // namespace

void set_matmul_precision(MatmulPrecision precision) { allowed = precision; }
MatmulPrecision matmul_precision() { return allowed; }

std::string_view name(MatmulPrecision precision) {
  const auto index = static_cast<std::size_t>(precision);
  check_value(index < kNames.size(), "MatmulPrecision: {} is not a precision", index);
  return kNames[index];
}

MatmulPrecision matmul_precision(std::string_view text) {
  return detail::enum_named<MatmulPrecision>("matmul_precision:", kNames, text);
}

// AVX512_BF16 multiplies bf16 twice as fast as f32, so that three products would take longer than one of f32. AMX
// computes even six in less time.
int bf16_terms_per_f32() {
  const std::string_view unit = bf16_products();
  switch (matmul_precision()) {
    case MatmulPrecision::highest: return unit == "AMX" ? 3 : 0;
    case MatmulPrecision::high: return unit == "AMX" ? 2 : 0;
    case MatmulPrecision::medium: return unit != "f32" ? 1 : 0;
  }
  return 0;
}

}  // namespace braid
