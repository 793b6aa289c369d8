#include <braid/core/products/detail/gemm_by_onednn.h>

#include <algorithm>

#include <oneapi/dnnl/dnnl.h>

#include <braid/core/error.h>
#include <braid/core/instruction_set.h>

// oneDNN runs on OpenMP. These two functions are declared here because OpenMP's header needs -fopenmp.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int count);

namespace braid::detail {
namespace {

/// Keeps oneDNN on the calling thread: it would split k between OpenMP threads, which changes bits. The setting is per
/// thread and costs nanoseconds.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(before_); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

/// oneDNN for AVX-512 without copies walks b down its rows where b is not transposed, and a where a is. It is fast
/// there up to about 256 rows at a time and loses a third of its speed beyond (dW of a transformer: 50-60 % of the peak
/// against 75-85 %).
constexpr std::int64_t kRowsAtATime = 256;

/// Keeps oneDNN to an instruction set. Returns the one that it then uses, which is the best if it has begun already.
InstructionSet limit_onednn(InstructionSet most) {
  const InstructionSet best = instruction_sets().back();
  if (most == best) return best;
  const auto limit = most == InstructionSet::avx2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_avx512_core_bf16;
  return dnnl_set_max_cpu_isa(limit) == dnnl_success ? most : best;
}

}  // namespace

// oneDNN has no code for less than SSE4.1, which a processor without AVX2 may have.
bool may_use_onednn() {
  const InstructionSet now = instruction_set();
  if (now == InstructionSet::baseline && now != instruction_sets().back()) return false;
  static const InstructionSet first = limit_onednn(now);
  return now == first;
}

void multiply_by_onednn(const Product<float>& p) {
  const OneOpenMpThread one_thread;
  const bool at_once = p.b.transposed || instruction_set() == InstructionSet::avx2;
  const std::int64_t step = at_once ? p.k : kRowsAtATime;
  for (std::int64_t first = 0; first < p.k; first += step) {
    const dnnl_status_t status =
        dnnl_sgemm(p.a.transposed ? 'T' : 'N', p.b.transposed ? 'T' : 'N', p.m, p.n, std::min(step, p.k - first),
                   p.alpha, p.a.from(0, first).data, p.a.stride, p.b.from(first, 0).data, p.b.stride,
                   first == 0 ? p.beta : 1.0F, p.c.data, p.c.stride);
    check<Error>(status == dnnl_success, "gemm: dnnl_sgemm failed with status {}", int{status});
  }
}

}  // namespace braid::detail
