// Both matrix products of the maps' vjp, from one pass over x while it is in cache: lanes along the width of the
// streams, so that no lane is wasted on the n (n + 2) columns of phi. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_
#undef BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_
#else
#define BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

#include <braid/mhc/kernels/channels-inl.h>
#include <braid/mhc/kernels/panels.h>
#include <braid/mhc/kernels/prefetch-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// z = x phi of some tokens, backwards: dphi += x^T dz and products = dz phi^T.
template <class T>
struct ProductVjp {
  int64_t tokens, width, m;
  const T *x, *dz;     // [tokens, width], [tokens, m]
  const T* phi;        // panels of [width, m]
  T *dphi, *products;  // panels of [width, m]; [tokens, width] with rows product_step apart
  int64_t product_step;
};

/// The terms of kColumns columns at the lanes from p on: their phi and dphi stay in registers for all tokens.
template <int kColumns, class D, class T>
HWY_INLINE void add_columns(D d, const ProductVjp<T>& v, int64_t p, int64_t column, Prefetcher<T>& prefetcher) {
  using V = hn::Vec<D>;
  const int64_t tokens = v.tokens, width = v.width, m = v.m, product_step = v.product_step;
  const int64_t at = panel_offset(p, column, m);
  V phi[kColumns], dphi[kColumns];
  for (int k = 0; k < kColumns; ++k) {
    phi[k] = hn::LoadU(d, v.phi + at + k * kPanel);
    dphi[k] = hn::LoadU(d, v.dphi + at + k * kPanel);
  }
  const T *const x = v.x + p, *const dz_columns = v.dz + column;
  T* const products = v.products + p;
  for (int64_t t = 0; t < tokens; ++t) {
    const T* dz = dz_columns + t * m;
    T* product = products + t * product_step;
    const V x_t = hn::LoadU(d, x + t * width);
    V sum[2] = {column == 0 ? hn::Zero(d) : hn::LoadU(d, product), hn::Zero(d)};  // two shorter chains of additions
    for (int k = 0; k < kColumns; ++k) {
      const V g = hn::Set(d, dz[k]);
      dphi[k] = hn::MulAdd(g, x_t, dphi[k]);
      sum[k % 2] = hn::MulAdd(g, phi[k], sum[k % 2]);
    }
    hn::StoreU(hn::Add(sum[0], sum[1]), d, product);
    prefetcher.next_line();
  }
  for (int k = 0; k < kColumns; ++k) hn::StoreU(dphi[k], d, v.dphi + at + k * kPanel);
}

/// Both products of a tile while the next is prefetched.
template <class T>
void product_vjp(const ProductVjp<T>& v, Prefetcher<T> prefetcher) {
  constexpr int kMany = HWY_MAX_BYTES >= 64 ? 12 : 4;  // as many columns as the registers hold twice
  over_channels<T, kPanel>(v.width, [&](auto d, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p += static_cast<int64_t>(hn::Lanes(d))) {
      int64_t column = 0;
      for (; column + kMany <= v.m; column += kMany) add_columns<kMany>(d, v, p, column, prefetcher);
      by_fours(v.m - column,
               [&](auto group, int64_t i) { add_columns<decltype(group)::value>(d, v, p, column + i, prefetcher); });
    }
  });
}

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
