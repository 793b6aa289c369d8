#include <braid/autograd/kernels/softmax.h>

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

/// The sum over i of f(i, part), a vector each.
template <class T, class F>
T row_sum(std::int64_t n, F f) {
  const hn::ScalableTag<T> d;
  return sum_vectors(d, n,
                     [&](std::int64_t i, auto part) HWY_ATTR { return part.or_else(d, f(i, part), hn::Zero(d)); });
}

/// `log(sum(exp(x)))`; -inf when all elements are.
template <class T>
T row_logsumexp(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const T top = max_element(d, n, x), shift = std::isinf(top) ? 0 : top;
  const auto s = hn::Set(d, shift);
  return shift + std::log(row_sum<T>(
                     n, [&](std::int64_t i, auto part) HWY_ATTR { return exp(d, hn::Sub(part.load(d, x + i), s)); }));
}

template <class T>
void softmax_rows(std::int64_t rows, std::int64_t width, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const auto top = hn::Set(d, max_element(d, width, x));
    const T sum = row_sum<T>(width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto e = exp_to_one(d, hn::Sub(part.load(d, x + i), top));
      part.store(e, d, y + i);
      return e;
    });
    const auto scale = hn::Set(d, 1 / sum);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      part.store(hn::Mul(part.load(d, y + i), scale), d, y + i);
    });
  }
}

/// dx = y (dy - sum(dy y))
template <class T>
void softmax_rows_vjp(std::int64_t rows, std::int64_t width, const T* dy, const T* y, T* dx) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < rows; ++row, dy += width, y += width, dx += width) {
    const auto mean = hn::Set(d, row_sum<T>(width, [&](std::int64_t i, auto part) HWY_ATTR {
                                return hn::Mul(part.load(d, dy + i), part.load(d, y + i));
                              }));
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      part.store(hn::Mul(part.load(d, y + i), hn::Sub(part.load(d, dy + i), mean)), d, dx + i);
    });
  }
}

/// y = (x - max) - log(sum(exp(x - max))): in this order large x keep their digits.
template <class T>
void log_softmax_rows(std::int64_t rows, std::int64_t width, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const auto top = hn::Set(d, max_element(d, width, x));
    const T sum = row_sum<T>(
        width, [&](std::int64_t i, auto part) HWY_ATTR { return exp_to_one(d, hn::Sub(part.load(d, x + i), top)); });
    const auto log_sum = hn::Set(d, std::log(sum));
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      part.store(hn::Sub(hn::Sub(part.load(d, x + i), top), log_sum), d, y + i);
    });
  }
}

/// dx = dy - exp(y) sum(dy)
template <class T>
void log_softmax_rows_vjp(std::int64_t rows, std::int64_t width, const T* dy, const T* y, T* dx) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < rows; ++row, dy += width, y += width, dx += width) {
    const auto sum =
        hn::Set(d, row_sum<T>(width, [&](std::int64_t i, auto part) HWY_ATTR { return part.load(d, dy + i); }));
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      part.store(hn::NegMulAdd(exp_to_one(d, part.load(d, y + i)), sum, part.load(d, dy + i)), d, dx + i);
    });
  }
}

template <class T>
void logsumexp_rows(std::int64_t rows, std::int64_t width, const T* x, T* y) {
  for (std::int64_t row = 0; row < rows; ++row) y[row] = row_logsumexp(x + row * width, width);
}

/// dx = dy exp(x - y); 0 in a row of -inf
template <class T>
void logsumexp_rows_vjp(std::int64_t rows, std::int64_t width, const T* dy, const T* x, const T* y, T* dx) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < rows; ++row, x += width, dx += width) {
    const auto shift = hn::Set(d, y[row] == -std::numeric_limits<T>::infinity() ? 0 : y[row]);
    const auto scale = hn::Set(d, dy[row]);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      part.store(hn::Mul(scale, exp_to_one(d, hn::Sub(part.load(d, x + i), shift))), d, dx + i);
    });
  }
}

template <class T>
Softmax<T> table() {
  return {.softmax = softmax_rows<T>,
          .softmax_vjp = softmax_rows_vjp<T>,
          .log_softmax = log_softmax_rows<T>,
          .log_softmax_vjp = log_softmax_rows_vjp<T>,
          .logsumexp = logsumexp_rows<T>,
          .logsumexp_vjp = logsumexp_rows_vjp<T>};
}

Softmax<float> table_f32() { return table<float>(); }
Softmax<double> table_f64() { return table<double>(); }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::kernels {

HWY_EXPORT(table_f32);
HWY_EXPORT(table_f64);

template <>
Softmax<float> softmax() {
  return HWY_DYNAMIC_DISPATCH(table_f32)();
}

template <>
Softmax<double> softmax() {
  return HWY_DYNAMIC_DISPATCH(table_f64)();
}

}  // namespace braid::kernels
#endif
