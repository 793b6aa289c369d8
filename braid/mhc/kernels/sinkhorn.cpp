#include <braid/mhc/kernels/sinkhorn.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <braid/core/parallel.h>

namespace braid::mhc::kernels {
namespace {

// All code below normalises rows first and columns last. The other order is the same problem transposed, so only
// reading and writing a matrix know of it.
//
// Range: exp(logits) overflows, and after one half-step a whole column may still underflow. So the first two half-steps
// run in log space. From there on every row and column holds an entry of at least 1/n^2, hence every sum lies in
// [1/n^2, n] and plain divisions are safe.

// `N` is int, or a std::integral_constant for which the compiler unrolls.
template <class T, class N>
void read_matrix(const T* in, N n, bool transposed, T* w) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) w[i * n + j] = transposed ? in[j * n + i] : in[i * n + j];
}

/// Half-step 1 in log space: log_p = logits - logsumexp over each row, and p = exp(log_p).
template <class T, class N>
void log_softmax_rows(const T* logits, N n, T* log_p, T* p) {
  for (int i = 0; i < n; ++i) {
    const T* z = logits + i * n;
    T top = z[0], poison = 0;
    for (int j = 0; j < n; ++j) {
      top = z[j] > top ? z[j] : top;
      poison += z[j] * 0;  // NaN once a logit is NaN or infinite
    }
    T sum = poison;
    for (int j = 0; j < n; ++j) sum += p[i * n + j] = std::exp(z[j] - top);
    const T shift = top + std::log(sum);
    for (int j = 0; j < n; ++j) {
      log_p[i * n + j] = z[j] - shift;
      p[i * n + j] /= sum;
    }
  }
}

/// dlogits = g - p * (row sums of g), in place.
template <class T, class N>
void log_softmax_rows_vjp(const T* p, N n, T* g) {
  for (int i = 0; i < n; ++i) {
    T sum = 0;
    for (int j = 0; j < n; ++j) sum += g[i * n + j];
    for (int j = 0; j < n; ++j) g[i * n + j] -= p[i * n + j] * sum;
  }
}

/// Half-step 2, out of log space: the softmax of each column. `line` has room for n numbers.
template <class T, class N>
void softmax_columns(const T* log_p, N n, T* line, T* p) {
  std::copy_n(log_p, n, line);
  for (int i = 1; i < n; ++i)
    for (int j = 0; j < n; ++j) line[j] = std::max(line[j], log_p[i * n + j]);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) p[i * n + j] = std::exp(log_p[i * n + j] - line[j]);
  std::fill_n(line, n, T{0});
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) line[j] += p[i * n + j];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) p[i * n + j] /= line[j];
}

/// dlog_p = p * (g - column sums of g p), in place.
template <class T, class N>
void softmax_columns_vjp(const T* p, N n, T* line, T* g) {
  std::fill_n(line, n, T{0});
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) line[j] += g[i * n + j] * p[i * n + j];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) g[i * n + j] = p[i * n + j] * (g[i * n + j] - line[j]);
}

/// y = v / s for the sums s of v's rows. y may be v.
template <class T, class N>
void normalize_rows(const T* v, N n, T* s, T* y) {
  for (int i = 0; i < n; ++i) {
    T sum = 0;
    for (int j = 0; j < n; ++j) sum += v[i * n + j];
    s[i] = sum;
    for (int j = 0; j < n; ++j) y[i * n + j] = v[i * n + j] / sum;
  }
}

/// dv = (g - row sums of g y) / s, in place.
template <class T, class N>
void normalize_rows_vjp(const T* y, const T* s, N n, T* g) {
  for (int i = 0; i < n; ++i) {
    T dot = 0;
    for (int j = 0; j < n; ++j) dot += g[i * n + j] * y[i * n + j];
    for (int j = 0; j < n; ++j) g[i * n + j] = (g[i * n + j] - dot) / s[i];
  }
}

/// The same for columns.
template <class T, class N>
void normalize_columns(const T* v, N n, T* s, T* y) {
  std::fill_n(s, n, T{0});
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) s[j] += v[i * n + j];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) y[i * n + j] = v[i * n + j] / s[j];
}

template <class T, class N>
void normalize_columns_vjp(const T* y, const T* s, N n, T* line, T* g) {
  std::fill_n(line, n, T{0});
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) line[j] += g[i * n + j] * y[i * n + j];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) g[i * n + j] = (g[i * n + j] - line[j]) / s[j];
}

/// One thread's buffers. `keep` half-steps are remembered; the forward pass needs none and overwrites one.
template <class T>
struct Workspace {
  std::vector<T> w, log_p, line;  // [n, n], [n, n], [n]
  std::vector<T> y, s;            // the result of each half-step [keep, n, n], its sums [keep, n]

  Workspace(std::int64_t n, std::int64_t keep) : w(n * n), log_p(n * n), line(n), y(keep * n * n), s(keep * n) {}
};

/// Normalises ws.w; the last n * n numbers of ws.y receive the result.
template <class T, class N>
void iterate(int iterations, N n, bool keep, Workspace<T>& ws) {
  const int step = keep ? n * n : 0;
  T* y = ws.y.data();
  T* s = ws.s.data();
  log_softmax_rows(ws.w.data(), n, ws.log_p.data(), y);
  softmax_columns(ws.log_p.data(), n, ws.line.data(), y + step);
  y += step;
  for (int k = 1; k < iterations; ++k) {
    normalize_rows(y, n, s, y + step);
    y += step;
    s += keep ? n : 0;
    normalize_columns(y, n, s, y + step);
    y += step;
    s += keep ? n : 0;
  }
}

/// Pulls ws.w, the cotangent of the result, back to the logits in place, newest half-step first.
template <class T, class N>
void iterate_vjp(std::int64_t iterations, N n, Workspace<T>& ws) {
  T* g = ws.w.data();
  T* line = ws.line.data();
  const T* y = ws.y.data() + (2 * iterations - 1) * n * n;
  const T* s = ws.s.data() + (2 * iterations - 2) * n;
  for (int k = 1; k < iterations; ++k) {
    s -= n;
    normalize_columns_vjp(y, s, n, line, g);
    y -= n * n;
    s -= n;
    normalize_rows_vjp(y, s, n, g);
    y -= n * n;
  }
  softmax_columns_vjp(y, n, line, g);
  log_softmax_rows_vjp(y - n * n, n, g);
}

/// Calls body(n, begin, end) for blocks of matrices of about 2^15 divisions each; n is a constant where that pays.
template <class Body>
void for_each_block(const SinkhornProblem& p, Body body) {
  const std::int64_t work = std::int64_t{2} * p.n * p.n * p.iterations;
  const std::int64_t block = std::max<std::int64_t>(1, 32768 / work);
  parallel_for(p.matrices, block, [&](std::int64_t begin, std::int64_t end) {
    if (p.n == 4)
      body(std::integral_constant<int, 4>(), begin, end);
    else
      body(p.n, begin, end);
  });
}

}  // namespace

template <class T>
void sinkhorn_forward(const SinkhornProblem& p, const T* logits, T* out) {
  for_each_block(p, [&](auto n, std::int64_t begin, std::int64_t end) {
    Workspace<T> ws(n, 1);
    for (std::int64_t b = begin; b < end; ++b) {
      read_matrix(logits + b * n * n, n, p.rows_last, ws.w.data());
      iterate(p.iterations, n, false, ws);
      read_matrix(ws.y.data(), n, p.rows_last, out + b * n * n);
    }
  });
}

template <class T>
void sinkhorn_vjp(const SinkhornProblem& p, const T* logits, const T* dy, T* dlogits) {
  for_each_block(p, [&](auto n, std::int64_t begin, std::int64_t end) {
    Workspace<T> ws(n, std::int64_t{2} * p.iterations);
    for (std::int64_t b = begin; b < end; ++b) {
      read_matrix(logits + b * n * n, n, p.rows_last, ws.w.data());
      iterate(p.iterations, n, true, ws);
      read_matrix(dy + b * n * n, n, p.rows_last, ws.w.data());
      iterate_vjp(p.iterations, n, ws);
      read_matrix(ws.w.data(), n, p.rows_last, dlogits + b * n * n);
    }
  });
}

template void sinkhorn_forward(const SinkhornProblem&, const float*, float*);
template void sinkhorn_forward(const SinkhornProblem&, const double*, double*);
template void sinkhorn_vjp(const SinkhornProblem&, const float*, const float*, float*);
template void sinkhorn_vjp(const SinkhornProblem&, const double*, const double*, double*);

}  // namespace braid::mhc::kernels
