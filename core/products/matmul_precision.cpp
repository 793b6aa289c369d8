#include <braid/core/products/matmul_precision.h>

#include <atomic>

#include <braid/core/error.h>
#include <braid/core/products/gemm.h>

namespace braid {
namespace {

std::atomic<MatmulPrecision> allowed = MatmulPrecision::highest;

}  // namespace

void set_matmul_precision(MatmulPrecision precision) { allowed = precision; }
MatmulPrecision matmul_precision() { return allowed; }

std::string_view name(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::highest: return "highest";
    case MatmulPrecision::high: return "high";
    case MatmulPrecision::medium: return "medium";
  }
  throw ValueError(fmt::format("MatmulPrecision: {} is none", static_cast<int>(precision)));
}

MatmulPrecision matmul_precision(std::string_view text) {
  for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium})
    if (text == name(precision)) return precision;
  throw ValueError(fmt::format("matmul_precision: '{}' is not one of highest, high, medium", text));
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
