#include <braid/autograd/kernels/normalization.h>

#include <algorithm>
#include <cmath>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/normalization.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class S, class T = Compute<S>>
void rms_norm(const NormalizedRows<S>& in, std::int64_t begin, std::int64_t end, double eps, S* y, T* rstd) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.width;
  const S* x = in.x + begin * width;
  y += begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width, y += width) {
    const T squares = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto v = part.load(d, x + i);
      return hn::Mul(v, v);
    });
    rstd[row] = 1 / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(eps));
    const auto scale = hn::Set(d, rstd[row]);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto normalized = hn::Mul(part.load(d, x + i), scale);
      part.store(hn::Mul(normalized, part.load(d, in.weight + i)), d, y + i);
    });
  }
}

/// With g = dy weight: dx = rstd g - x rstd^3 mean(g x), dweight = sum over rows of dy x rstd.
template <class S, class T = Compute<S>>
void rms_norm_vjp(const NormalizedRows<S>& in, std::int64_t begin, std::int64_t end, const T* rstd, const S* dy, S* dx,
                  T* dweight) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.width;
  const S* x = in.x + begin * width;
  dy += begin * width;
  dx += begin * width;
  dweight += begin / in.block * width;
  std::fill_n(dweight, width, T{0});
  for (std::int64_t row = begin; row < end; ++row, x += width, dy += width, dx += width) {
    const auto scale = hn::Set(d, rstd[row]);
    const T dot = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto dyx = hn::Mul(part.load(d, dy + i), part.load(d, x + i));
      part.store(hn::MulAdd(dyx, scale, part.load(d, dweight + i)), d, dweight + i);
      return hn::Mul(dyx, part.load(d, in.weight + i));
    });
    const auto pull = hn::Set(d, rstd[row] * rstd[row] * rstd[row] * dot / static_cast<T>(width));
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto g = hn::Mul(part.load(d, dy + i), part.load(d, in.weight + i));
      part.store(hn::NegMulAdd(part.load(d, x + i), pull, hn::Mul(g, scale)), d, dx + i);
    });
  }
}

/// With g = dy weight, the means over a row A of a g, B of a x, D of g x and E of b dy x, and v = rstd a - x rstd^3 B,
/// the cotangent of g: ddy = v weight + rstd b x, dweight = sum over rows of v dy,
/// dx = rstd b dy - rstd^3 (a D + g B + x (A - 3 rstd^2 B D + E)).
template <class S, class T = Compute<S>>
void rms_norm_second_vjp(const NormalizedRows<S>& in, std::int64_t begin, std::int64_t end,
                         const RMSNormSecondVjp<S>& of) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.width;
  T* dweight = of.dweight + begin / in.block * width;
  std::fill_n(dweight, width, T{0});
  for (std::int64_t row = begin; row < end; ++row) {
    const S *x = in.x + row * width, *dy = of.dy + row * width, *a = of.a + row * width;
    S *dx = of.dx + row * width, *ddy = of.ddy + row * width;
    const auto mean = [&](auto product) HWY_ATTR {
      return sum_vectors(d, width,
                         [&](std::int64_t i, auto part) HWY_ATTR {
                           const auto vdy = part.load(d, dy + i);
                           return product(part.load(d, a + i), part.load(d, x + i),
                                          hn::Mul(vdy, part.load(d, in.weight + i)),
                                          hn::Mul(vdy, part.load(d, of.b + i)));
                         }) /
             static_cast<T>(width);
    };
    const T ag = mean([](auto va, auto, auto g, auto) HWY_ATTR { return hn::Mul(va, g); });
    const T ax = mean([](auto va, auto vx, auto, auto) HWY_ATTR { return hn::Mul(va, vx); });
    const T gx = mean([](auto, auto vx, auto g, auto) HWY_ATTR { return hn::Mul(g, vx); });
    const T bdyx = mean([](auto, auto vx, auto, auto bdy) HWY_ATTR { return hn::Mul(bdy, vx); });
    const T r = of.rstd[row], cube = r * r * r;
    const auto rstd = hn::Set(d, r), of_a = hn::Set(d, cube * gx), of_g = hn::Set(d, cube * ax);
    const auto of_x = hn::Set(d, cube * (ag - 3 * r * r * ax * gx + bdyx));
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto vx = part.load(d, x + i), vdy = part.load(d, dy + i), va = part.load(d, a + i);
      const auto weight = part.load(d, in.weight + i), rb = hn::Mul(rstd, part.load(d, of.b + i));
      const auto v = hn::NegMulAdd(vx, of_g, hn::Mul(rstd, va));
      const auto pull = hn::MulAdd(va, of_a, hn::MulAdd(hn::Mul(vdy, weight), of_g, hn::Mul(vx, of_x)));
      part.store(hn::MulSub(rb, vdy, pull), d, dx + i);
      part.store(hn::MulAdd(v, weight, hn::Mul(rb, vx)), d, ddy + i);
      part.store(hn::MulAdd(v, vdy, part.load(d, dweight + i)), d, dweight + i);
    });
  }
}

template <class S, class T = Compute<S>>
void layer_norm(const NormalizedRows<S>& in, std::int64_t begin, std::int64_t end, double eps, S* y, T* mean, T* rstd) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.width;
  const T count = static_cast<T>(width);
  const S* x = in.x + begin * width;
  y += begin * width;
  for (std::int64_t row = begin; row < end; ++row, x += width, y += width) {
    const T sum = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR { return part.load(d, x + i); });
    mean[row] = sum / count;
    const auto center = hn::Set(d, mean[row]);
    // A second pass over the row, which is in the first-level cache: E[x^2] - mean^2 would cancel.
    const T squares = sum_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto centered = part.or_else(d, hn::Sub(part.load(d, x + i), center), hn::Zero(d));
      return hn::Mul(centered, centered);
    });
    rstd[row] = 1 / std::sqrt(squares / count + static_cast<T>(eps));
    const auto scale = hn::Set(d, rstd[row]);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto normalized = hn::Mul(hn::Sub(part.load(d, x + i), center), scale);
      part.store(hn::MulAdd(normalized, part.load(d, in.weight + i), part.load(d, in.bias + i)), d, y + i);
    });
  }
}

/// With n = (x - mean) rstd, g = dy weight: dx = rstd (g - mean(g) - n mean(g n)), dweight = sum over rows of dy n,
/// dbias = sum over rows of dy.
template <class S, class T = Compute<S>>
void layer_norm_vjp(const NormalizedRows<S>& in, std::int64_t begin, std::int64_t end, const T* mean, const T* rstd,
                    const S* dy, LayerNormCotangents<S> out) {
  using D = hn::ScalableTag<T>;
  const D d;
  const std::int64_t width = in.width, sums = begin / in.block * width;
  const T count = static_cast<T>(width);
  T *dweight = out.dweight + sums, *dbias = out.dbias + sums;
  for (T* sum : {dweight, dbias}) std::fill_n(sum, width, T{0});
  const S* x = in.x + begin * width;
  S* dx = out.dx + begin * width;
  dy += begin * width;
  for (std::int64_t row = begin; row < end; ++row, dy += width, x += width, dx += width) {
    const auto center = hn::Set(d, mean[row]), scale = hn::Set(d, rstd[row]);
    hn::Vec<D> gs[kParts<D>], dots[kParts<D>];
    for (int k = 0; k < kParts<D>; ++k) gs[k] = dots[k] = hn::Zero(d);
    for_each_part(d, width, [&](std::int64_t i, int k, auto part) HWY_ATTR {
      const auto cotangent = part.load(d, dy + i), n = hn::Mul(hn::Sub(part.load(d, x + i), center), scale);
      const auto g = hn::Mul(cotangent, part.load(d, in.weight + i));
      gs[k] = hn::Add(gs[k], g);
      dots[k] = hn::MulAdd(g, n, dots[k]);
      part.store(hn::MulAdd(cotangent, n, part.load(d, dweight + i)), d, dweight + i);
      part.store(hn::Add(cotangent, part.load(d, dbias + i)), d, dbias + i);
    });
    const auto g_mean = hn::Set(d, sum_lanes<kParts<D>>(d, gs) / count);
    const auto dot_mean = hn::Set(d, sum_lanes<kParts<D>>(d, dots) / count);
    for_each_vector(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto n = hn::Mul(hn::Sub(part.load(d, x + i), center), scale);
      const auto centered = hn::Sub(hn::Mul(part.load(d, dy + i), part.load(d, in.weight + i)), g_mean);
      part.store(hn::Mul(scale, hn::NegMulAdd(n, dot_mean, centered)), d, dx + i);
    });
  }
}

template <class T>
constexpr NormalizationKernels<T> kTable = {.rms_norm = for_all_rows<rms_norm<T>>,
                                            .rms_norm_vjp = for_all_rows<rms_norm_vjp<T>>,
                                            .rms_norm_second_vjp = for_all_rows<rms_norm_second_vjp<T>>,
                                            .layer_norm = for_all_rows<layer_norm<T>>,
                                            .layer_norm_vjp = for_all_rows<layer_norm_vjp<T>>};

Tables<NormalizationKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<NormalizationKernels> normalization_kernels())
