#include <braid/core/products/gemm.h>

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include <braid/core/batch_invariant.h>
#include <braid/core/error.h>
#include <braid/core/kernels/convert.h>
#include <braid/core/kernels/round_up.h>
#include <braid/core/kernels/scratch.h>
#include <braid/core/parallel.h>
#include <braid/core/platform/cpu.h>
#include <braid/core/products/detail/gemm_by_amx.h>
#include <braid/core/products/kernels/amx.h>
#include <braid/core/products/kernels/packed_product.h>
#include <oneapi/dnnl/dnnl.h>

// oneDNN runs on OpenMP. These two functions are declared here because OpenMP's header needs -fopenmp.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int count);

// oneDNN exports this function, but none of its headers declares it.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                               float alpha, const braid::bfloat16* a, dnnl_dim_t lda,
                                               const braid::bfloat16* b, dnnl_dim_t ldb, float beta, float* c,
                                               dnnl_dim_t ldc);

namespace braid {
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

using kernels::divide_up;

/// What multiplies.
enum class Unit {
  amx,      ///< AMX, on all threads: bf16, or the bf16 terms of f32
  rounded,  ///< operands of f32 are rounded to bf16 and multiplied as such
  onednn,   ///< oneDNN, tile by tile: f32, and bf16 by the processor's instructions for it
  widened,  ///< tile by tile: operands of bf16 are widened and multiplied in f32
  packed,   ///< braid's packed product, tile by tile: f32 and f64
};

/// Below this side length packing for AMX costs more than oneDNN's product.
constexpr std::int64_t kLeastSideForAmx = 32;

/// Whether the processor multiplies bf16 faster than f32: by AMX, which implies AVX512_BF16, or by AVX512_BF16, which
/// has half the speed of f32 on Intel processors. oneDNN generates code for x86-64; elsewhere it has plain loops.
#ifdef __x86_64__
constexpr bool kHasOneDnn = true;
bool has_bf16_products() {
  static const bool has = kernels::amx::is_available() || (platform::has_avx512_bf16() && !platform::is_intel());
  return has;
}
#else
constexpr bool kHasOneDnn = false;
bool has_bf16_products() { return false; }
#endif

/// The unit for tiles of a product, one thread each.
template <class T>
Unit unit_of_tiles() {
  constexpr bool is_bf16 = std::is_same_v<T, bfloat16>;
  const bool onednn = kHasOneDnn && !std::is_same_v<T, double> && !BatchInvariant::active();
  if (onednn && (!is_bf16 || has_bf16_products())) return Unit::onednn;
  return is_bf16 ? Unit::widened : Unit::packed;
}

/// The unit for a product on all threads.
template <class T, class C>
Unit choose_unit(const Product<T, C>& p) {
  if (p.alpha == 1 && !BatchInvariant::active()) {
    const bool has_amx = kernels::amx::is_available();
    if (std::is_same_v<T, bfloat16> && has_amx && std::min({p.m, p.n, p.k}) >= kLeastSideForAmx) return Unit::amx;
    if (std::is_same_v<T, float> && p.bf16_terms > 0 && p.k > 0) {
      if (has_amx) return Unit::amx;
      if (p.bf16_terms == 1) return Unit::rounded;
    }
  }
  return unit_of_tiles<T>();
}

/// c = beta * c
template <class T, class C>
void scale(const Product<T, C>& p) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    C* const row = p.c.from(i, 0).data;
    if (p.beta == 0) {
      std::fill_n(row, p.n, C(0.0F));
    } else {
      std::transform(row, row + p.n, row, [&](C value) { return static_cast<C>(p.beta * value); });
    }
  }
}

void check_status(const char* function, dnnl_status_t status) {
  check<Error>(status == dnnl_success, "gemm: {} failed with status {}", function, int{status});
}

/// oneDNN without copies walks b down its rows where b is not transposed, and a where a is. It is fast there up to
/// about 256 rows at a time and loses a third of its speed beyond (dW of a transformer: 50-60 % of the peak against
/// 75-85 %).
constexpr std::int64_t kRowsAtATime = 256;

void multiply_in_onednn(const Product<float>& p) {
  const OneOpenMpThread one_thread;
  const std::int64_t step = p.b.transposed ? p.k : kRowsAtATime;
  for (std::int64_t first = 0; first < p.k; first += step)
    check_status("dnnl_sgemm",
                 dnnl_sgemm(p.a.transposed ? 'T' : 'N', p.b.transposed ? 'T' : 'N', p.m, p.n,
                            std::min(step, p.k - first), p.alpha, p.a.from(0, first).data, p.a.stride,
                            p.b.from(first, 0).data, p.b.stride, first == 0 ? p.beta : 1.0F, p.c.data, p.c.stride));
}

void multiply_in_onednn([[maybe_unused]] const Product<bfloat16, float>& p) {
#ifdef __x86_64__
  const OneOpenMpThread one_thread;
  check_status("dnnl_gemm_bf16bf16f32",
               dnnl_gemm_bf16bf16f32(p.a.transposed ? 'T' : 'N', p.b.transposed ? 'T' : 'N', p.m, p.n, p.k, p.alpha,
                                     p.a.data, p.a.stride, p.b.data, p.b.stride, p.beta, p.c.data, p.c.stride));
#endif
}

/// The product once its row has been copied to c, to which it adds.
template <class T>
Product<T, Compute<T>> onto_row(Product<T, Compute<T>> p) {
  for (std::int64_t i = 0; i < p.m; ++i) std::copy_n(p.row, p.n, p.c.from(i, 0).data);
  p.row = nullptr;
  p.beta = 1;
  return p;
}

/// A tile of floats or doubles.
template <class T>
void multiply(Unit unit, const Product<T>& p) {
  if (p.row != nullptr) return multiply(unit, onto_row<T>(p));
  if (p.k == 0) return scale(p);
  if constexpr (std::is_same_v<T, float>)
    if (unit == Unit::onednn) return multiply_in_onednn(p);
  const kernels::PackedProductKernels<T> packed = kernels::packed_product_kernels().of<T>();
  kernels::Buffer<T> scratch(packed.scratch(p.m, p.n, p.k));
  packed.multiply(p, scratch.data());
}

/// An operand [rows, columns] widened, in the same layout without gaps.
struct Widened {
  Widened(std::int64_t rows, std::int64_t columns, MatrixView<const bfloat16> x)
      : memory(rows * columns), view{memory.data(), x.transposed ? rows : columns, x.transposed} {
    if (x.transposed) std::swap(rows, columns);
    kernels::widen_rows(rows, columns, x, {memory.data(), columns});
  }

  kernels::Buffer<float> memory;
  MatrixView<const float> view;
};

void multiply(Unit unit, const Product<bfloat16, float>& p) {
  if (p.row != nullptr) return multiply(unit, onto_row<bfloat16>(p));
  if (p.k == 0) return scale(p);
  if (unit == Unit::onednn) return multiply_in_onednn(p);
  const Widened a(p.m, p.k, p.a), b(p.k, p.n, p.b);
  multiply(unit_of_tiles<float>(),
           Product<float>{
               .m = p.m, .n = p.n, .k = p.k, .a = a.view, .b = b.view, .c = p.c, .alpha = p.alpha, .beta = p.beta});
}

void multiply(Unit unit, const Product<bfloat16>& p) {
  kernels::Buffer<float> memory(p.m * p.n);
  const MatrixView<float> sums{memory.data(), p.n};
  if (p.beta != 0) kernels::widen_rows(p.m, p.n, p.c, sums);
  multiply(
      unit,
      Product<bfloat16, float>{
          .m = p.m, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .c = sums, .alpha = p.alpha, .beta = p.beta, .row = p.row});
  kernels::round_rows(p.m, p.n, sums, p.c);
}

/// An operand [rows, columns] rounded to bf16 on all threads, in the same layout without gaps.
struct Rounded {
  Rounded(std::int64_t rows, std::int64_t columns, MatrixView<const float> x)
      : memory(rows * columns), view{memory.data(), x.transposed ? rows : columns, x.transposed} {
    if (x.transposed) std::swap(rows, columns);
    constexpr std::int64_t kElements = 16384;
    const auto round = kernels::convert_kernels().round_finite;
    std::atomic<bool> all_finite = true;
    parallel_for(rows, std::max<std::int64_t>(1, kElements / columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        if (!round(x.data + i * x.stride, memory.data() + i * columns, columns)) all_finite = false;
    });
    finite = all_finite;
  }

  kernels::Buffer<bfloat16> memory;
  MatrixView<const bfloat16> view;
  bool finite;
};

/// Returns false, with c unchanged, if an operand is not finite as bf16.
bool multiply_rounded(const Product<float>& p) {
  const Rounded a(p.m, p.k, p.a);
  if (!a.finite) return false;
  const Rounded b(p.k, p.n, p.b);
  if (!b.finite) return false;
  gemm(Product<bfloat16, float>{.m = p.m,
                                .n = p.n,
                                .k = p.k,
                                .a = a.view,
                                .b = b.view,
                                .c = p.c,
                                .alpha = p.alpha,
                                .beta = p.beta,
                                .row = p.row});
  return true;
}

struct Tile {
  std::int64_t rows;
  std::int64_t columns;
};

/// Halves a tile along its rows unless its columns are far more; sides are multiples of 16, the width of a vector.
Tile halve(Tile tile) {
  const auto half = [](std::int64_t size) { return divide_up(size, 32) * 16; };
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

/// For few rows, whose time is that of reading b: 256 or 512 KiB of b per tile, if b has at least two tiles.
Tile choose_tile_of_few_rows(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kElements = 65536;
  return {m, n * k < 2 * kElements ? n : kernels::round_up(divide_up(kElements, k), 64)};
}

}  // namespace

const char* bf16_products() {
  if (!has_bf16_products()) return "f32";
  return kernels::amx::is_available() ? "AMX" : "AVX512_BF16";
}

template <class T, class C>
void gemm_serial(const Product<T, C>& p) {
  if (p.m > 0 && p.n > 0) multiply(unit_of_tiles<T>(), p);
}

template <class T, class C>
void gemm(const Product<T, C>& p) {
  if (p.m == 0 || p.n == 0) return;
  Unit unit = choose_unit(p);
  if constexpr (!std::is_same_v<T, double>)
    if (unit == Unit::amx && detail::gemm_by_amx(p)) return;
  if constexpr (std::is_same_v<T, float>)
    if (unit == Unit::rounded && multiply_rounded(p)) return;
  if (unit == Unit::amx || unit == Unit::rounded) unit = unit_of_tiles<T>();  // an operand is not finite as bf16
  const bool few_rows =
      unit_of_tiles<Compute<T>>() == Unit::packed && p.m <= kernels::packed_product_kernels().of<Compute<T>>().few_rows;
  const Tile tile = few_rows ? choose_tile_of_few_rows(p.m, p.n, p.k) : choose_tile(p.m, p.n, p.k);
  const std::int64_t across = divide_up(p.n, tile.columns);
  parallel_for(across * divide_up(p.m, tile.rows), 1, [&](std::int64_t index, std::int64_t) {
    const std::int64_t i = index / across * tile.rows, j = index % across * tile.columns;
    multiply(unit, p.tile(i, j, std::min(tile.rows, p.m - i), std::min(tile.columns, p.n - j)));
  });
}

#define BRAID_INSTANTIATE(T, C)                    \
  template void gemm_serial(const Product<T, C>&); \
  template void gemm(const Product<T, C>&);
BRAID_INSTANTIATE(float, float)
BRAID_INSTANTIATE(double, double)
BRAID_INSTANTIATE(bfloat16, bfloat16)
BRAID_INSTANTIATE(bfloat16, float)
#undef BRAID_INSTANTIATE

}  // namespace braid
