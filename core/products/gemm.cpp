#include <braid/core/products/gemm.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/kernels/convert.h>
#include <braid/core/parallel.h>
#include <braid/core/products/detail/gemm_by_amx.h>
#include <braid/core/products/kernels/amx.h>
#include <braid/core/products/kernels/packed_product.h>
#include <braid/core/storage.h>
#include <oneapi/dnnl/dnnl.h>

// oneDNN runs on OpenMP. Its header would need -fopenmp, and these two functions are all that is needed of it.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int count);

// oneDNN exports it beside dnnl_sgemm, but none of its headers declares it.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                               float alpha, const braid::bfloat16* a, dnnl_dim_t lda,
                                               const braid::bfloat16* b, dnnl_dim_t ldb, float beta, float* c,
                                               dnnl_dim_t ldc);

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

template <class T, class C = T>
using Product = kernels::PackedProduct<T, C>;

/// c [m, n] = beta * c
template <class T, class C>
void scale(const Product<T, C>& p) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    C* const row = p.c + i * p.ldc;
    if (p.beta == 0) {
      std::fill_n(row, p.n, C(0.0F));
    } else {
      std::transform(row, row + p.n, row, [&](C value) { return static_cast<C>(p.beta * value); });
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

void check_status(const char* function, dnnl_status_t status) {
  if (status != dnnl_success)
    throw std::runtime_error(fmt::format("gemm: {} failed with status {}", function, int{status}));
}

/// oneDNN without copies walks b down its rows where b is not transposed, and a where a is. It is fast there up to
/// about 256 rows at a time and loses a third of its speed beyond (dW of a transformer: 50-60 % of the peak against
/// 75-85 %).
constexpr std::int64_t kRowsAtATime = 256;

[[maybe_unused]] void multiply_in_onednn(const Product<float>& p) {
  const OneOpenMpThread one_thread;
  const std::int64_t step = p.transpose_b ? p.k : kRowsAtATime;
  for (std::int64_t first = 0; first < p.k; first += step)
    check_status(
        "dnnl_sgemm",
        dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, std::min(step, p.k - first), p.alpha,
                   p.a + (p.transpose_a ? first * p.lda : first), p.lda, p.b + (p.transpose_b ? first : first * p.ldb),
                   p.ldb, first == 0 ? p.beta : 1.0F, p.c, p.ldc));
}

[[maybe_unused]] void multiply_in_onednn(const Product<bfloat16, float>& p) {
#ifdef __x86_64__
  const OneOpenMpThread one_thread;
  check_status("dnnl_gemm_bf16bf16f32",
               dnnl_gemm_bf16bf16f32(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha, p.a,
                                     p.lda, p.b, p.ldb, p.beta, p.c, p.ldc));
#endif
}

/// Whether the processor multiplies bf16 faster than f32: by AMX, which comes with AVX512_BF16, or by the latter, which
/// on Intel's has half the speed of f32.
bool has_bf16_products() {
#ifdef __x86_64__
  static const bool has =
      kernels::amx::is_available() || (__builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel"));
  return has;
#else
  return false;
#endif
}

/// Whether a product goes to core/kernels.
template <class T>
bool is_packed() {
  return !kInOneDnn<T> || BatchInvariant::active();
}

/// Memory for some floats while a product is made.
struct Floats {
  explicit Floats(std::int64_t count) : storage(static_cast<std::size_t>(count) * sizeof(float)) {}
  operator float*() { return reinterpret_cast<float*>(storage.data()); }
  Storage storage;
};

/// Rows of X, `ldx` apart, as rows of Y.
template <class X, class Y>
void convert_rows(std::int64_t rows, std::int64_t columns, const X* x, std::int64_t ldx, Y* y, std::int64_t ldy) {
  const kernels::ConvertKernels convert = kernels::convert_kernels();
  for (std::int64_t i = 0; i < rows; ++i) {
    if constexpr (std::is_same_v<X, bfloat16>)
      convert.widen(x + i * ldx, y + i * ldy, columns);
    else
      convert.round(x + i * ldx, y + i * ldy, columns);
  }
}

template <class T>
void multiply(const Product<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return scale(p);
  if constexpr (kInOneDnn<T>)
    if (!is_packed<T>()) return multiply_in_onednn(p);
  const kernels::PackedProductKernels<T> packed = kernels::packed_product_kernels().of<T>();
  Storage scratch(static_cast<std::size_t>(packed.scratch(p.m, p.n, p.k)) * sizeof(T));
  packed.multiply(p, reinterpret_cast<T*>(scratch.data()));
}

/// Without such products, of operands that are widened.
void multiply(const Product<bfloat16, float>& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return scale(p);
  if (has_bf16_products() && !BatchInvariant::active()) return multiply_in_onednn(p);
  const std::int64_t a_rows = p.transpose_a ? p.k : p.m, a_columns = p.transpose_a ? p.m : p.k;
  const std::int64_t b_rows = p.transpose_b ? p.n : p.k, b_columns = p.transpose_b ? p.k : p.n;
  Floats a(a_rows * a_columns), b(b_rows * b_columns);
  convert_rows<bfloat16, float>(a_rows, a_columns, p.a, p.lda, a, a_columns);
  convert_rows<bfloat16, float>(b_rows, b_columns, p.b, p.ldb, b, b_columns);
  multiply<float>(
      {p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.alpha, a, a_columns, b, b_columns, p.beta, p.c, p.ldc});
}

/// c = a b + row
template <class T, class C>
void multiply_onto(const C* row, Product<T, C> p) {
  for (std::int64_t i = 0; i < p.m; ++i) std::copy_n(row, p.n, p.c + i * p.ldc);
  p.beta = 1;
  multiply(p);
}

/// The product of a whole tile, in f32.
struct TileOfSums {
  explicit TileOfSums(const Product<bfloat16, bfloat16>& p)
      : p(p),
        sums(p.m * p.n),
        product{p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, sums, p.n} {}
  void round() { convert_rows<float, bfloat16>(p.m, p.n, sums, p.n, p.c, p.ldc); }

  const Product<bfloat16, bfloat16>& p;
  Floats sums;
  Product<bfloat16, float> product;
};

void multiply(const Product<bfloat16, bfloat16>& p) {
  TileOfSums tile(p);
  if (p.beta != 0) convert_rows<bfloat16, float>(p.m, p.n, p.c, p.ldc, tile.sums, p.n);
  multiply(tile.product);
  tile.round();
}

void multiply_onto(const float* row, const Product<bfloat16, bfloat16>& p) {
  TileOfSums tile(p);
  multiply_onto(row, tile.product);
  tile.round();
}

struct Tile {
  std::int64_t rows;
  std::int64_t columns;
};

/// Halves a tile along its rows unless its columns are far more; sides are multiples of 16, the width of a vector.
Tile halve(Tile tile) {
  const auto half = [](std::int64_t size) { return (size + 31) / 32 * 16; };
  if (2 * tile.rows >= tile.columns) return {half(tile.rows), tile.columns};
  return {tile.rows, half(tile.columns)};
}

/// Two tiles as soon as that pays for a fork (about 5 us of work), then up to 16 while a tile is long enough (40 us)
/// and not too thin: each tile packs its own rows of a and columns of b, which costs 10-20 % at 64 x 64.
Tile choose_tile(std::int64_t m, std::int64_t n, std::int64_t k) {
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
Tile choose_tile_of_few_rows(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kElements = 65536;
  return {m, n * k < 2 * kElements ? n : ((kElements + k - 1) / k + 63) / 64 * 64};
}

/// Shorter than a group of its tiles, packing costs more than oneDNN's product.
constexpr std::int64_t kLeastSideForAmx = 32;

}  // namespace

const char* bf16_products() {
  if (!has_bf16_products()) return "f32";
  return kernels::amx::is_available() ? "AMX" : "AVX512_BF16";
}

template <class T, class C>
void gemm_serial(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, Compute<T> alpha,
                 const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Compute<T> beta, C* c, std::int64_t ldc) {
  multiply(Product<T, C>{transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
}

template <class T, class C>
void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, Compute<T> alpha,
          const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Compute<T> beta, C* c, std::int64_t ldc,
          const Compute<T>* row) {
  if (m == 0 || n == 0) return;
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (alpha == 1 && std::min({m, n, k}) >= kLeastSideForAmx && kernels::amx::is_available() &&
        !BatchInvariant::active()) {
      detail::gemm_by_amx(1, Product<T, C>{transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc},
                          row);
      return;
    }
  }
  const bool few_rows = is_packed<Compute<T>>() && m <= kernels::packed_product_kernels().of<Compute<T>>().few_rows;
  const Tile tile = few_rows ? choose_tile_of_few_rows(m, n, k) : choose_tile(m, n, k);
  const std::int64_t across = (n + tile.columns - 1) / tile.columns;
  const std::int64_t down = (m + tile.rows - 1) / tile.rows;
  parallel_for(across * down, 1, [&](std::int64_t index, std::int64_t) {
    const std::int64_t i = index / across * tile.rows;
    const std::int64_t j = index % across * tile.columns;
    const Product<T, C> product{transpose_a,
                                transpose_b,
                                std::min(tile.rows, m - i),
                                std::min(tile.columns, n - j),
                                k,
                                alpha,
                                a + (transpose_a ? i : i * lda),
                                lda,
                                b + (transpose_b ? j * ldb : j),
                                ldb,
                                beta,
                                c + i * ldc + j,
                                ldc};
    if (row == nullptr)
      multiply(product);
    else
      multiply_onto(row + j, product);
  });
}

#define BRAID_INSTANTIATE(T, C)                                                                                       \
  template void gemm_serial(bool, bool, std::int64_t, std::int64_t, std::int64_t, Compute<T>, const T*, std::int64_t, \
                            const T*, std::int64_t, Compute<T>, C*, std::int64_t);                                    \
  template void gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, Compute<T>, const T*, std::int64_t,        \
                     const T*, std::int64_t, Compute<T>, C*, std::int64_t, const Compute<T>*);
BRAID_INSTANTIATE(float, float)
BRAID_INSTANTIATE(double, double)
BRAID_INSTANTIATE(bfloat16, bfloat16)
BRAID_INSTANTIATE(bfloat16, float)
#undef BRAID_INSTANTIATE

}  // namespace braid
