#include <braid/core/gemm.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <braid/core/parallel.h>
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

/// c [m, n] = beta * c
template <class T>
void scale(int64_t m, int64_t n, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, c += ldc) {
    if (beta == T(0)) {
      std::fill_n(c, n, T(0));
    } else {
      std::transform(c, c + n, c, [beta](T value) { return beta * value; });
    }
  }
}

/// oneDNN without copies walks b down its rows where b is not transposed, and a where a is. It is fast there up to
/// about 256 rows at a time and loses a third of its speed beyond (dW of a transformer: 50-60 % of the peak against
/// 75-85 %).
constexpr int64_t kRowsAtATime = 256;

void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
              int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const OneOpenMpThread one_thread;
  const int64_t step = transpose_b ? k : kRowsAtATime;
  for (int64_t first = 0; first < k; first += step) {
    const dnnl_status_t status =
        dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, std::min(step, k - first), alpha,
                   a + (transpose_a ? first * lda : first), lda, b + (transpose_b ? first : first * ldb), ldb,
                   first == 0 ? beta : 1.0F, c, ldc);
    if (status != dnnl_success)
      throw std::runtime_error("gemm: dnnl_sgemm failed with status " + std::to_string(status));
  }
}

constexpr int64_t kStrip = 4;  // a block of 4 x 4 sums stays in registers

/// Copies 4 columns of x [k, columns], from `first` on, to strip [k, 4]; columns that x does not have become zero.
void pack_strip(const double* x, int64_t row_step, int64_t column_step, int64_t first, int64_t columns, int64_t k,
                double* strip) {
  for (int64_t j = 0; j < kStrip; ++j) {
    for (int64_t p = 0; p < k; ++p) {
      strip[p * kStrip + j] = first + j < columns ? x[p * row_step + (first + j) * column_step] : 0.0;
    }
  }
}

/// sums [4, 4] = a_strip^T b_strip, both strips [k, 4].
void multiply_strips(int64_t k, const double* a_strip, const double* b_strip, double (&sums)[kStrip][kStrip]) {
  double local[kStrip][kStrip] = {};
  for (int64_t p = 0; p < k; ++p, a_strip += kStrip, b_strip += kStrip) {
    for (int64_t i = 0; i < kStrip; ++i) {
      for (int64_t j = 0; j < kStrip; ++j) local[i][j] += a_strip[i] * b_strip[j];
    }
  }
  std::copy_n(&local[0][0], kStrip * kStrip, &sums[0][0]);
}

void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
              int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  const int64_t strip_size = kStrip * k;
  std::vector<double> a_strip(static_cast<size_t>(strip_size));
  std::vector<double> b_strips(static_cast<size_t>((n + kStrip - 1) / kStrip * strip_size));
  for (int64_t j = 0; j < n; j += kStrip) {
    pack_strip(b, transpose_b ? 1 : ldb, transpose_b ? ldb : 1, j, n, k, b_strips.data() + j * k);
  }
  double sums[kStrip][kStrip];
  for (int64_t i = 0; i < m; i += kStrip) {
    pack_strip(a, transpose_a ? lda : 1, transpose_a ? 1 : lda, i, m, k, a_strip.data());
    for (int64_t j = 0; j < n; j += kStrip) {
      multiply_strips(k, a_strip.data(), b_strips.data() + j * k, sums);
      for (int64_t row = i; row < std::min(i + kStrip, m); ++row) {
        for (int64_t column = j; column < std::min(j + kStrip, n); ++column) {
          double& out = c[row * ldc + column];
          out = alpha * sums[row - i][column - j] + (beta == 0.0 ? 0.0 : beta * out);
        }
      }
    }
  }
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

}  // namespace

template <class T>
void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                 const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(m, n, beta, c, ldc);
  multiply(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class T>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  const Tile tile = choose_tile(m, n, k);
  const int64_t across = (n + tile.columns - 1) / tile.columns;
  const int64_t down = (m + tile.rows - 1) / tile.rows;
  parallel_for(across * down, 1, [&](int64_t index, int64_t) {
    const int64_t i = index / across * tile.rows;
    const int64_t j = index % across * tile.columns;
    gemm_serial(transpose_a, transpose_b, std::min(tile.rows, m - i), std::min(tile.columns, n - j), k, alpha,
                a + (transpose_a ? i : i * lda), lda, b + (transpose_b ? j * ldb : j), ldb, beta, c + i * ldc + j, ldc);
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
