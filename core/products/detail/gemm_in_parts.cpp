#include <braid/core/products/detail/gemm_in_parts.h>

#include <algorithm>
#include <atomic>

#include <braid/core/bfloat16.h>
#include <braid/core/kernels/convert.h>
#include <braid/core/parallel.h>
#include <braid/core/products/detail/gemm_by_amx.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/kernels/amx.h>
#include <braid/core/storage.h>

namespace braid::detail {
namespace {

/// A matrix as it lies in memory, in bf16.
class Rounded {
 public:
  Rounded(std::int64_t rows, std::int64_t columns, const float* x, std::int64_t ldx)
      : storage_(static_cast<std::size_t>(rows * columns) * sizeof(bfloat16)) {
    constexpr std::int64_t kElements = 16384;
    const kernels::ConvertKernels convert = kernels::convert_kernels();
    bfloat16* const to = reinterpret_cast<bfloat16*>(storage_.data());
    std::atomic<bool> all_finite = true;
    parallel_for(rows, std::max<std::int64_t>(1, kElements / columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        if (!convert.round_finite(x + i * ldx, to + i * columns, columns)) all_finite = false;
    });
    finite = all_finite;
  }

  const bfloat16* data() const { return reinterpret_cast<const bfloat16*>(storage_.data()); }

  bool finite;

 private:
  Storage storage_;
};

}  // namespace

bool gemm_in_parts(int parts, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                   const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                   std::int64_t ldc, const float* row) {
  if (m == 0 || n == 0 || k == 0) return false;
  if (kernels::amx::is_available())
    return gemm_by_amx<float, float>(parts, {transpose_a, transpose_b, m, n, k, 1, a, lda, b, ldb, beta, c, ldc}, row);
  if (parts > 1) return false;
  const std::int64_t columns_of_a = transpose_a ? m : k, columns_of_b = transpose_b ? k : n;
  const Rounded left(transpose_a ? k : m, columns_of_a, a, lda);
  if (!left.finite) return false;
  const Rounded right(transpose_b ? n : k, columns_of_b, b, ldb);
  if (!right.finite) return false;
  gemm<bfloat16, float>(transpose_a, transpose_b, m, n, k, 1, left.data(), columns_of_a, right.data(), columns_of_b,
                        beta, c, ldc, row);
  return true;
}

}  // namespace braid::detail
