#include <braid/autograd/kernels/layer_norm.h>

#include <algorithm>
#include <cmath>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class S, class T = Compute<S>>
void forward(const LayerNormRows<S>& in, std::int64_t begin, std::int64_t end, double eps, S* y,
             LayerNormMoments<T> moments) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.rows.width;
  const T count = static_cast<T>(width);
  const S* x = in.x + begin * width;
  y += begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width, y += width) {
    const T sum = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR { return part.load(d, x + i); });
    moments.mean[row] = sum / count;
    const auto mean = hn::Set(d, moments.mean[row]);
    // A second pass over the row, which is in the first-level cache: E[x^2] - mean^2 would cancel.
    const T squares = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto centered = part.or_else(d, hn::Sub(part.load(d, x + i), mean), hn::Zero(d));
      return hn::Mul(centered, centered);
    });
    moments.rstd[row] = 1 / std::sqrt(squares / count + static_cast<T>(eps));
    const auto scale = hn::Set(d, moments.rstd[row]);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto normalized = hn::Mul(hn::Sub(part.load(d, x + i), mean), scale);
      part.store(hn::MulAdd(normalized, part.load(d, in.weight + i), part.load(d, in.bias + i)), d, y + i);
    });
  }
}

/// With n = (x - mean) rstd, g = dy weight: dx = rstd (g - mean(g) - n mean(g n)), dweight = sum over rows of dy n,
/// dbias = sum over rows of dy.
template <class S, class T = Compute<S>>
void vjp(const LayerNormRows<S>& in, std::int64_t begin, std::int64_t end, LayerNormMoments<const T> moments,
         const S* dy, LayerNormCotangents<S> out) {
  using D = hn::ScalableTag<T>;
  const D d;
  const std::int64_t width = in.rows.width, sums = begin / in.rows.block * width;
  const T count = static_cast<T>(width);
  T *dweight = out.dweight + sums, *dbias = out.dbias + sums;
  std::fill_n(dweight, width, T{0});
  std::fill_n(dbias, width, T{0});
  const S* x = in.x + begin * width;
  S* dx = out.dx + begin * width;
  dy += begin * width;
  for (std::int64_t row = begin; row < end; ++row, dy += width, x += width, dx += width) {
    const auto mean = hn::Set(d, moments.mean[row]), scale = hn::Set(d, moments.rstd[row]);
    hn::Vec<D> gs[kParts<D>], dots[kParts<D>];
    for (int k = 0; k < kParts<D>; ++k) gs[k] = dots[k] = hn::Zero(d);
    for_each_part(d, width, [&](std::int64_t i, int k, auto part) HWY_ATTR {
      const auto cotangent = part.load(d, dy + i), n = hn::Mul(hn::Sub(part.load(d, x + i), mean), scale);
      const auto g = hn::Mul(cotangent, part.load(d, in.weight + i));
      gs[k] = hn::Add(gs[k], g);
      dots[k] = hn::MulAdd(g, n, dots[k]);
      part.store(hn::MulAdd(cotangent, n, part.load(d, dweight + i)), d, dweight + i);
      part.store(hn::Add(cotangent, part.load(d, dbias + i)), d, dbias + i);
    });
    const auto g_mean = hn::Set(d, sum_lanes<kParts<D>>(d, gs) / count);
    const auto dot_mean = hn::Set(d, sum_lanes<kParts<D>>(d, dots) / count);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto n = hn::Mul(hn::Sub(part.load(d, x + i), mean), scale);
      const auto centered = hn::Sub(hn::Mul(part.load(d, dy + i), part.load(d, in.weight + i)), g_mean);
      part.store(hn::Mul(scale, hn::NegMulAdd(n, dot_mean, centered)), d, dx + i);
    });
  }
}

template <class T>
constexpr LayerNormKernels<T> kTable = {.forward = for_all_rows<forward<T>>, .vjp = for_all_rows<vjp<T>>};

Tables<LayerNormKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<LayerNormKernels> layer_norm_kernels())
