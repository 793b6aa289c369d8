#include <braid/core/detail/gemm_in_parts.h>

#include <algorithm>
#include <atomic>

#include <braid/core/bfloat16.h>
#include <braid/core/detail/gemm_by_amx.h>
#include <braid/core/gemm.h>
#include <braid/core/kernels/amx.h>
#include <braid/core/kernels/convert.h>
#include <braid/core/parallel.h>
#include <braid/core/storage.h>

namespace braid::detail {
namespace {

enum class Order { large_first, small_first };

/// The parts of a matrix that lies in memory as [rows, columns], one after the other along the axis of k. `rows_are_k`
/// tells which one that is.
class Parts {
 public:
  Parts(int count, Order order, bool rows_are_k, int64_t rows, int64_t columns, const float* x, int64_t ldx)
      : ld(rows_are_k ? columns : count * columns),
        step_(rows_are_k ? rows * columns : columns),
        storage_(static_cast<size_t>(count * rows * columns) * sizeof(bfloat16)) {
    constexpr int64_t kElements = 16384;
    const kernels::ConvertKernels convert = kernels::convert_kernels();
    bfloat16* const largest =
        reinterpret_cast<bfloat16*>(storage_.data()) + (order == Order::large_first ? 0 : (count - 1) * step_);
    const int64_t to_next = order == Order::large_first ? step_ : -step_;
    std::atomic<bool> all_finite = true;
    parallel_for(rows, std::max<int64_t>(1, kElements / columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (!convert.split(x + i * ldx, columns, count, largest + i * ld, to_next)) all_finite = false;
    });
    finite = all_finite;
  }

  /// As they lie in memory, from the one at `index` on.
  const bfloat16* from(int index) const { return reinterpret_cast<const bfloat16*>(storage_.data()) + index * step_; }

  int64_t ld;
  bool finite;

 private:
  int64_t step_;
  Storage storage_;
};

}  // namespace

bool gemm_in_parts(int parts, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
                   int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc, const float* row) {
  if (m == 0 || n == 0 || k == 0) return false;
  if (kernels::amx::is_available())
    return gemm_by_amx<float, float>(parts, {transpose_a, transpose_b, m, n, k, 1, a, lda, b, ldb, beta, c, ldc}, row);
  const Parts left(parts, Order::large_first, transpose_a, transpose_a ? k : m, transpose_a ? m : k, a, lda);
  if (!left.finite) return false;
  const Parts right(parts, Order::small_first, !transpose_b, transpose_b ? n : k, transpose_b ? k : n, b, ldb);
  if (!right.finite) return false;
  // a0 b2 + a1 b1 + a2 b0, then a0 b1 + a1 b0, then a0 b0: each one product of factors that are so many times as long.
  for (int longest = parts; longest > 0; --longest)
    gemm<bfloat16, float>(transpose_a, transpose_b, m, n, longest * k, 1, left.from(0), left.ld,
                          right.from(parts - longest), right.ld, longest == parts ? beta : 1, c, ldc,
                          longest == parts ? row : nullptr);
  return true;
}

}  // namespace braid::detail
