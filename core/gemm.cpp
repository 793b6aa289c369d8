#include <braid/core/gemm.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <braid/core/batch_invariant.h>
#include <braid/core/kernels/packed_product.h>
#include <braid/core/parallel.h>
#include <braid/core/storage.h>
#include <oneapi/dnnl/dnnl.h>

// oneDNN runs on OpenMP. Its header would need -fopenmp, and these two functions are all that is needed of it.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int count);

namespace braid {
namespace {

/// Keeps oneDNN on the calling thread: it would split k between OpenMP threads, which changes bits. The setting belongs
/// to the calling thread and costs nanoseconds.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(before_); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

template <class T>
using Product = kernels::PackedProduct<T>;

/// c [m, n] = beta * c
template <class T>
void scale(const Product<T>& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    T* const row = p.c + i * p.ldc;
    if (p.beta == T(0)) {
      std::fill_n(row, p.n, T(0));
    } else {
      std::transform(row, row + p.n, row, [&](T value) { return p.beta * value; });
    }
  }
}

/// oneDNN makes its product at run time for the processor, of f32 and on x86-64; elsewhere it has a plain loop.
template <class T>
constexpr bool kInOneDnn =
#ifdef __x86_64__
    std::is_same_v<T, float>;
#else
    false;
#endif

/// oneDNN without copies walks b down its rows where b is not transposed, and a where a is. It is fast there up to
/// about 256 rows at a time and loses a third of its speed beyond (dW of a transformer: 50-60 % of the peak against
/// 75-85 %).
constexpr int64_t kRowsAtATime = 256;

[[maybe_unused]] void multiply_in_onednn(const Product<float>& p) {
  const OneOpenMpThread one_thread;
  const int64_t step = p.transpose_b ? p.k : kRowsAtATime;
  for (int64_t first = 0; first < p.k; first += step) {
    const dnnl_status_t status =
        dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, std::min(step, p.k - first), p.alpha,
                   p.a + (p.transpose_a ? first * p.lda : first), p.lda, p.b + (p.transpose_b ? first : first * p.ldb),
                   p.ldb, first == 0 ? p.beta : 1.0F, p.c, p.ldc);
    if (status != dnnl_success)
      throw std::runtime_error("gemm: dnnl_sgemm failed with status " + std::to_string(status));
  }
}

/// Whether a product goes to core/kernels.
template <class T>
bool is_packed() {
  return !kInOneDnn<T> || BatchInvariant::active();
}

template <class T>
void multiply(const Product<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return scale(p);
  if constexpr (kInOneDnn<T>)
    if (!is_packed<T>()) return multiply_in_onednn(p);
  const kernels::PackedProductKernels<T> packed = kernels::packed_product_kernels().of<T>();
  Storage scratch(static_cast<size_t>(packed.scratch(p.m, p.n, p.k)) * sizeof(T));
  packed.multiply(p, reinterpret_cast<T*>(scratch.data()));
}

struct Tile {
  int64_t rows;
  int64_t columns;
};

/// Halves a tile along its rows unless its columns are far more; sides are multiples of 16, the width of a vector.
Tile halve(Tile tile) {
  const auto half = [](int64_t size) { return (size + 31) / 32 * 16; };
  if (2 * tile.rows >= tile.columns) return {half(tile.rows), tile.columns};
  return {tile.rows, half(tile.columns)};
}

/// Two tiles as soon as that pays for a fork (about 5 us of work), then up to 16 while a tile is long enough (40 us)
/// and not too thin: each tile packs its own rows of a and columns of b, which costs 10-20 % at 64 x 64.
Tile choose_tile(int64_t m, int64_t n, int64_t k) {
  const auto products = [k](Tile tile) { return tile.rows * tile.columns * k; };
  const auto reuse = [](Tile tile) { return tile.rows * tile.columns / (tile.rows + tile.columns); };
  Tile tile{m, n};
  if (products(tile) < 500'000) return tile;
  tile = halve(tile);
  for (int tiles = 2; tiles < 16 && products(tile) > 4'000'000 && reuse(halve(tile)) >= 48; tiles *= 2)
    tile = halve(tile);
  return tile;
}

/// Few rows take the time of reading b: 256 or 512 KiB of it at a time, if there is twice as much.
Tile choose_tile_of_few_rows(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kElements = 65536;
  return {m, n * k < 2 * kElements ? n : ((kElements + k - 1) / k + 63) / 64 * 64};
}

}  // namespace

template <class T>
void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                 const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  multiply<T>({transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
}

template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  const bool few_rows = is_packed<T>() && m <= kernels::packed_product_kernels().of<T>().few_rows;
  const Tile tile = few_rows ? choose_tile_of_few_rows(m, n, k) : choose_tile(m, n, k);
  const int64_t across = (n + tile.columns - 1) / tile.columns;
  const int64_t down = (m + tile.rows - 1) / tile.rows;
  parallel_for(across * down, 1, [&](int64_t index, int64_t) {
    const int64_t i = index / across * tile.rows;
    const int64_t j = index % across * tile.columns;
    multiply<T>({transpose_a, transpose_b, std::min(tile.rows, m - i), std::min(tile.columns, n - j), k, alpha,
                 a + (transpose_a ? i : i * lda), lda, b + (transpose_b ? j * ldb : j), ldb, beta, c + i * ldc + j,
                 ldc});
  });
}

template void gemm_serial<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                                 int64_t, float, float*, int64_t);
template void gemm_serial<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*,
                                  int64_t, double, double*, int64_t);
template void gemm<float>(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
                          float, float*, int64_t);
template void gemm<double>(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*,
                           int64_t, double, double*, int64_t);

}  // namespace braid
