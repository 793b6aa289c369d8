#include <braid/autograd/kernels/rms_norm.h>

#include <algorithm>
#include <cmath>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/rms_norm.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class S, class T = Compute<S>>
void forward(const RMSNormRows<S>& in, std::int64_t begin, std::int64_t end, double eps, S* y, T* rstd) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.rows.width;
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
void vjp(const RMSNormRows<S>& in, std::int64_t begin, std::int64_t end, const T* rstd, const S* dy, S* dx,
         T* dweight) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = in.rows.width;
  const S* x = in.x + begin * width;
  dy += begin * width;
  dx += begin * width;
  dweight += begin / in.rows.block * width;
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

template <class T>
constexpr RMSNormKernels<T> kTable = {.forward = for_all_rows<forward<T>>, .vjp = for_all_rows<vjp<T>>};

Tables<RMSNormKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<RMSNormKernels> rms_norm_kernels())
