// The maps of a manifold-constrained hyper-connection and their vjp, one token per lane of a SIMD vector. Included once
// per SIMD target.

#if defined(BRAID_MHC_KERNELS_MAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_MAPS_INL_H_
#undef BRAID_MHC_KERNELS_MAPS_INL_H_
#else
#define BRAID_MHC_KERNELS_MAPS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/aligned_allocator.h>

#include <braid/mhc/kernels/mhc_read.h>
#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using braid::kernels::HWY_NAMESPACE::sigmoid;

/// Tokens as lanes: entry e of the maps of all of them is one vector. Lanes past the last token compute on zeros.
template <class T>
class MapLanes : mixings::HWY_NAMESPACE::Lanes<hn::ScalableTag<T>, 0> {
  using D = hn::ScalableTag<T>;
  using Base = mixings::HWY_NAMESPACE::Lanes<D, 0>;
  using Base::d_, Base::load, Base::n, Base::set, Base::store;
  using typename Base::V;

 public:
  MapLanes(const MHCSizes& sizes, const MHCRead& in)
      : Base(sizes.mixing),
        sizes_(sizes),
        kernels_(sizes.mixing.family().kernels().template of<T>()),
        alpha_(In{in.alpha}),
        bias_(In{in.bias}),
        column_rows_(sizes.columns()),
        map_rows_(sizes.maps()),
        buffer_(hwy::AllocateAligned<T>(static_cast<std::size_t>(3 * column_rows_.size() + 2 * map_rows_.size() +
                                                                 (2 + kernels_.workspace(sizes.mixing)) * lanes()))),
        logits_(buffer_.get()),
        normed_(logits_ + column_rows_.size()),
        dlogits_(normed_ + column_rows_.size()),
        maps_(dlogits_ + column_rows_.size()),
        dmaps_(maps_ + map_rows_.size()),
        inverse_r_(dmaps_ + map_rows_.size()),
        scale_(inverse_r_ + lanes()),
        workspace_(scale_ + lanes()) {}

  using Base::lanes;

  /// z [count, columns], r [count] -> maps [count, maps]
  void forward(std::int64_t count, const T* z, const T* r, T* maps) {
    const std::int64_t gates = sizes_.gates();
    compute_logits(count, z, r);
    for (std::int64_t e = 0; e < gates; ++e) {
      const V s = sigmoid(d_, load(logits_, e));
      store(
          maps_, e,
          e < n() ? hn::Add(s, set(sizes_.pre_eps)) : hn::MulAdd(set(sizes_.post_magnitude), s, set(sizes_.post_eps)));
    }
    for (std::int64_t e = gates; e < 2 * n(); ++e) store(maps_, e, hn::Zero(d_));
    kernels_.forward(sizes_.mixing, logits_ + gates * lanes(), maps_ + 2 * n() * lanes(), workspace_);
    map_rows_.unpack(maps_, count, maps);
  }

  /// maps and dmaps [count, maps] -> dz [count, columns] and scale [count], with dx_flat = dz phi^T - scale x_flat;
  /// adds to dalpha [groups] and dbias [columns].
  void backward(std::int64_t count, const T* z, const T* r, const T* maps, const T* dmaps, T* dz, T* scale, T* dalpha,
                T* dbias) {
    const std::int64_t gates = sizes_.gates();
    compute_logits(count, z, r);
    map_rows_.pack(maps, count, maps_);
    map_rows_.pack(dmaps, count, dmaps_);
    const V one = hn::Set(d_, 1);
    for (std::int64_t e = 0; e < gates; ++e) {
      const V s = sigmoid(d_, load(logits_, e)), slope = hn::Mul(s, hn::Sub(one, s));
      store(dlogits_, e, hn::Mul(load(dmaps_, e), e < n() ? slope : hn::Mul(set(sizes_.post_magnitude), slope)));
    }
    kernels_.vjp(sizes_.mixing, logits_ + gates * lanes(), maps_ + 2 * n() * lanes(), dmaps_ + 2 * n() * lanes(),
                 dlogits_ + gates * lanes(), workspace_);
    const V inverse_r = load(inverse_r_, 0);
    V sum = hn::Zero(d_);  // sum of alpha dh z / r
    V of_group[3];
    for (V& share : of_group) share = hn::Zero(d_);
    for (std::int64_t e = 0; e < columns(); ++e) {
      const V g = load(dlogits_, e), product = hn::Mul(g, load(normed_, e));
      add_tokens(g, dbias[e]);
      of_group[sizes_.group(e)] = hn::Add(of_group[sizes_.group(e)], product);
      sum = hn::MulAdd(alpha(e), product, sum);
      store(dlogits_, e, hn::Mul(hn::Mul(alpha(e), g), inverse_r));
    }
    for (std::int64_t i = 0; i < sizes_.groups(); ++i) add_tokens(of_group[i], dalpha[i]);
    column_rows_.unpack(dlogits_, count, dz);
    const V width = hn::Set(d_, static_cast<T>(sizes_.width()));
    store(scale_, 0, hn::Div(hn::Mul(sum, hn::Mul(inverse_r, inverse_r)), width));
    std::copy_n(scale_, count, scale);
  }

 private:
  std::int64_t columns() const { return sizes_.columns(); }
  V alpha(std::int64_t column) const { return hn::Set(d_, alpha_[sizes_.group(column)]); }

  /// Adds the lanes of v to a sum, 16 bytes after the other: how many tokens a vector holds does not change the bits.
  void add_tokens(V v, T& sum) const {
    HWY_ALIGN T lanes[hn::MaxLanes(D())];
    constexpr std::size_t kBlock = std::min<std::size_t>(16 / sizeof(T), hn::MaxLanes(D()));
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kBlock == 4) v = hn::Add(v, hn::Shuffle1032(v));
    if constexpr (kBlock == 4) v = hn::Add(v, hn::Shuffle2301(v));
    if constexpr (kBlock == 2) v = hn::Add(v, hn::Shuffle01(v));
#endif
    hn::Store(v, d_, lanes);
    for (std::size_t i = 0; i < hn::MaxLanes(D()); i += kBlock) sum += lanes[i];
  }

  /// alpha z / r + bias, and on the way z / r and 1 / r.
  void compute_logits(std::int64_t count, const T* z, const T* r) {
    column_rows_.pack(z, count, normed_);
    for (std::int64_t t = 0; t < lanes(); ++t) inverse_r_[t] = t < count ? 1 / r[t] : T{1};
    const V inverse = load(inverse_r_, 0);
    for (std::int64_t e = 0; e < columns(); ++e) {
      const V v = hn::Mul(load(normed_, e), inverse);
      store(normed_, e, v);
      store(logits_, e, hn::MulAdd(alpha(e), v, hn::Set(d_, bias_[e])));
    }
  }

  const MHCSizes& sizes_;
  const mixings::Kernels<T> kernels_;
  const T *alpha_, *bias_;  // [groups], [columns]
  const mixings::HWY_NAMESPACE::LanePacking<T> column_rows_, map_rows_;
  hwy::AlignedFreeUniquePtr<T[]> buffer_;
  T *logits_, *normed_, *dlogits_;  // [columns, lanes]
  T *maps_, *dmaps_;                // [maps, lanes]
  T *inverse_r_, *scale_;           // [lanes]
  T* workspace_;
};

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
