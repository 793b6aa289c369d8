#include <braid/autograd/kernels/softmax.h>

#include <cmath>
#include <limits>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

/// The sum over i of f(i, part), one vector at a time.
template <class T, class F>
T row_sum(std::int64_t n, F f) {
  const hn::ScalableTag<T> d;
  return sum_vectors(d, n,
                     [&](std::int64_t i, auto part) HWY_ATTR { return part.or_else(d, f(i, part), hn::Zero(d)); });
}

template <class T>
void softmax(std::int64_t n, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto max = hn::Set(d, max_element(d, n, x));
  const T sum = row_sum<T>(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto e = exp_to_one(d, hn::Sub(part.load(d, x + i), max));
    part.store(e, d, y + i);
    return e;
  });
  const auto scale = hn::Set(d, 1 / sum);
  for_each_vector(
      d, n, [&](std::int64_t i, auto part) HWY_ATTR { part.store(hn::Mul(part.load(d, y + i), scale), d, y + i); });
}

/// dx = y (dy - sum(dy y))
template <class T>
void softmax_vjp(std::int64_t n, const T* dy, const T* y, T* dx) {
  const hn::ScalableTag<T> d;
  const auto mean = hn::Set(d, row_sum<T>(n, [&](std::int64_t i, auto part) HWY_ATTR {
                              return hn::Mul(part.load(d, dy + i), part.load(d, y + i));
                            }));
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    part.store(hn::Mul(part.load(d, y + i), hn::Sub(part.load(d, dy + i), mean)), d, dx + i);
  });
}

/// y = (x - max) - log(sum(exp(x - max))): in this order large x keep their digits.
template <class T>
void log_softmax(std::int64_t n, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto max = hn::Set(d, max_element(d, n, x));
  const T sum = row_sum<T>(
      n, [&](std::int64_t i, auto part) HWY_ATTR { return exp_to_one(d, hn::Sub(part.load(d, x + i), max)); });
  const auto log_sum = hn::Set(d, log_of(sum));
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    part.store(hn::Sub(hn::Sub(part.load(d, x + i), max), log_sum), d, y + i);
  });
}

/// dx = dy - exp(y) sum(dy)
template <class T>
void log_softmax_vjp(std::int64_t n, const T* dy, const T* y, T* dx) {
  const hn::ScalableTag<T> d;
  const auto sum = hn::Set(d, row_sum<T>(n, [&](std::int64_t i, auto part) HWY_ATTR { return part.load(d, dy + i); }));
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    part.store(hn::NegMulAdd(exp_to_one(d, part.load(d, y + i)), sum, part.load(d, dy + i)), d, dx + i);
  });
}

/// A kernel of one row for the rows [begin, end).
template <auto kRow, class... T>
void each_row(const Rows& rows, std::int64_t begin, std::int64_t end, T*... data) {
  for (std::int64_t row = begin; row < end; ++row) kRow(rows.width, (data + row * rows.width)...);
}

/// y = log(sum(exp(x))), -infinity when all elements are.
template <class T>
void logsumexp(const Rows& rows, std::int64_t begin, std::int64_t end, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t n = rows.width;
  x += begin * n;
  for (std::int64_t row = begin; row < end; ++row, x += n) {
    const T max = max_element(d, n, x), shift = std::isinf(max) ? 0 : max;
    const auto s = hn::Set(d, shift);
    y[row] = shift + log_of(row_sum<T>(n, [&](std::int64_t i, auto part)
                                              HWY_ATTR { return exp(d, hn::Sub(part.load(d, x + i), s)); }));
  }
}

/// dx = dy exp(x - y), 0 in a row of -infinity.
template <class T>
void logsumexp_vjp(const Rows& rows, std::int64_t begin, std::int64_t end, const T* dy, const T* x, const T* y, T* dx) {
  const hn::ScalableTag<T> d;
  const std::int64_t n = rows.width;
  x += begin * n;
  dx += begin * n;
  for (std::int64_t row = begin; row < end; ++row, x += n, dx += n) {
    const auto shift = hn::Set(d, y[row] == -std::numeric_limits<T>::infinity() ? 0 : y[row]);
    const auto scale = hn::Set(d, dy[row]);
    for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
      part.store(hn::Mul(scale, exp_to_one(d, hn::Sub(part.load(d, x + i), shift))), d, dx + i);
    });
  }
}

template <class T>
constexpr SoftmaxKernels<T> kTable = {
    .softmax = for_all_rows<each_row<softmax<T>, const T, T>>,
    .softmax_vjp = for_all_rows<each_row<softmax_vjp<T>, const T, const T, T>>,
    .log_softmax = for_all_rows<each_row<log_softmax<T>, const T, T>>,
    .log_softmax_vjp = for_all_rows<each_row<log_softmax_vjp<T>, const T, const T, T>>,
    .logsumexp = for_all_rows<logsumexp<T>>,
    .logsumexp_vjp = for_all_rows<logsumexp_vjp<T>>};

Tables<SoftmaxKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<SoftmaxKernels> softmax_kernels())
