// The maps of a manifold-constrained hyper-connection and their vjp, for as many tokens at once as a SIMD vector has
// lanes. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_MAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_MAPS_INL_H_
#undef BRAID_MHC_KERNELS_MAPS_INL_H_
#else
#define BRAID_MHC_KERNELS_MAPS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/aligned_allocator.h>

#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/kernels/mhc_read.h>
#include <braid/mhc/kernels/sinkhorn-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using braid::kernels::HWY_NAMESPACE::sigmoid;

/// Tokens as lanes: entry e of the maps of all of them is one vector. Lanes past the last token compute on zeros.
template <class T, int kN>
class MapLanes {
 public:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;

  MapLanes(const MHCSizes& sizes, const MHCParams<T>& params)
      : sizes_(sizes),
        params_(params),
        sinkhorn_(d_, sizes.n, sizes.iterations, sizes.rows_last),
        lanes_(static_cast<int64_t>(hn::Lanes(d_))),
        buffer_(hwy::AllocateAligned<T>(static_cast<size_t>(
            lanes_ * (3 * sizes.maps() + SinkhornLanes<D, kN>::workspace_vectors(sizes.n, sizes.iterations) + 2)))) {}

  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  /// z [count, m], r [count] -> maps [count, m]
  void forward(int64_t count, const T* z, const T* r, T* maps) {
    T* h = logits(count, z, r);
    for (int64_t e = 0; e < 2 * n(); ++e) store(h, e, map_of(h, e));
    sinkhorn_.forward(h + 2 * n() * lanes_);
    unpack(h, count, maps);
  }

  /// dmaps [count, m] -> dz [count, m] and scale [count], with dx_flat = dz phi^T - scale x_flat;
  /// adds to dalpha [3] and dbias [m].
  void backward(int64_t count, const T* z, const T* r, const T* dmaps, T* dz, T* scale, T* dalpha, T* dbias) {
    T* h = logits(count, z, r);
    T* dh = pack(dmaps, count, 2);
    const V one = hn::Set(d_, 1);
    for (int64_t e = 0; e < 2 * n(); ++e) {  // pre: p (1 - p); post, q = 2 s: q (1 - q / 2) = 2 s (1 - s)
      const V s = sigmoid(d_, load(h, e)), slope = hn::Mul(s, hn::Sub(one, s));
      store(dh, e, hn::Mul(load(dh, e), e < n() ? slope : hn::Add(slope, slope)));
    }
    sinkhorn_.backward(h + 2 * n() * lanes_, dh + 2 * n() * lanes_, buffer_.get() + (3 * m() + 2) * lanes_);
    const T* normed = buffer_.get() + m() * lanes_;  // z / r, by logits()
    const V inverse_r = load(buffer_.get(), 3 * m());
    V sum = hn::Zero(d_);  // sum of alpha dh z / r
    for (int64_t e = 0; e < m(); ++e) {
      const V g = load(dh, e), product = hn::Mul(g, load(normed, e));
      dbias[e] += hn::GetLane(hn::SumOfLanes(d_, g));
      dalpha[group(e)] += hn::GetLane(hn::SumOfLanes(d_, product));
      sum = hn::MulAdd(alpha(e), product, sum);
      store(dh, e, hn::Mul(hn::Mul(alpha(e), g), inverse_r));
    }
    unpack(dh, count, dz);
    T* scales = buffer_.get() + (3 * m() + 1) * lanes_;
    const V width = hn::Set(d_, static_cast<T>(sizes_.width()));
    hn::Store(hn::Div(hn::Mul(sum, hn::Mul(inverse_r, inverse_r)), width), d_, scales);
    std::copy_n(scales, count, scale);
  }

 private:
  int64_t n() const { return kN != 0 ? kN : sizes_.n; }
  int64_t m() const { return n() * (n() + 2); }
  int64_t group(int64_t entry) const { return entry < n() ? 0 : entry < 2 * n() ? 1 : 2; }
  V alpha(int64_t entry) const { return hn::Set(d_, params_.alpha[group(entry)]); }
  V load(const T* p, int64_t entry) const { return hn::Load(d_, p + entry * lanes_); }
  void store(T* p, int64_t entry, V v) const { hn::Store(v, d_, p + entry * lanes_); }

  V map_of(const T* h, int64_t entry) const {
    const V s = sigmoid(d_, load(h, entry));
    return entry < n() ? s : hn::Add(s, s);
  }

  /// Rows [count, m] to vectors [m, lanes], in one of three buffers.
  T* pack(const T* rows, int64_t count, int64_t slot) {
    T* vectors = buffer_.get() + slot * m() * lanes_;
    if (count < lanes_) std::fill_n(vectors, m() * lanes_, T{0});
    for (int64_t t = 0; t < count; ++t)
      for (int64_t e = 0; e < m(); ++e) vectors[e * lanes_ + t] = rows[t * m() + e];
    return vectors;
  }

  void unpack(const T* vectors, int64_t count, T* rows) const {
    for (int64_t t = 0; t < count; ++t)
      for (int64_t e = 0; e < m(); ++e) rows[t * m() + e] = vectors[e * lanes_ + t];
  }

  /// h = alpha z / r + bias; the second buffer then holds z / r, and 1 / r lies behind the third.
  T* logits(int64_t count, const T* z, const T* r) {
    T* normed = pack(z, count, 1);
    T* inverse_r = buffer_.get() + 3 * m() * lanes_;
    for (int64_t t = 0; t < lanes_; ++t) inverse_r[t] = t < count ? 1 / r[t] : T{1};
    const V inverse = hn::Load(d_, inverse_r);
    for (int64_t e = 0; e < m(); ++e) {
      const V v = hn::Mul(load(normed, e), inverse);
      store(normed, e, v);
      store(buffer_.get(), e, hn::MulAdd(alpha(e), v, hn::Set(d_, params_.bias[e])));
    }
    return buffer_.get();
  }

  const D d_;
  const MHCSizes& sizes_;
  const MHCParams<T>& params_;
  SinkhornLanes<D, kN> sinkhorn_;
  int64_t lanes_;
  hwy::AlignedFreeUniquePtr<T[]> buffer_;
};

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
