#include <braid/mhc/kernels/attention_residual.h>

#include <algorithm>
#include <numeric>

#include <braid/mhc/kernels/tiles.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/attention_residual.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

using braid::kernels::In, braid::kernels::Out;
using braid::kernels::HWY_NAMESPACE::exp, braid::kernels::HWY_NAMESPACE::transform;

/// The states as streams.
StreamSizes sizes_of(const Tensor& key, const std::vector<Tensor>& states) {
  return {states[0].shape().without(-1).numel(), std::ssize(states), key.numel()};
}

/// y = sum_i weights_i v_i at the channels [begin, end) of the row at `row`.
template <class D, class S, class T>
HWY_INLINE void mix_states(D d, std::int64_t begin, std::int64_t end, const std::vector<const S*>& v, std::int64_t row,
                           const T* weights, S* y) {
  for (std::int64_t c = row + begin; c < row + end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
    auto sum = hn::Zero(d);
    for (std::size_t i = 0; i < v.size(); ++i) sum = hn::MulAdd(hn::Set(d, weights[i]), load(d, v[i] + c), sum);
    store<Store::cached>(d, sum, y + c);
  }
}

template <class S, class T = Compute<S>>
void read(const Tensor& key_in, const std::vector<Tensor>& states, double eps, Tensor& saved_out, Tensor& result) {
  const StreamSizes s = sizes_of(key_in, states);
  const T* key = In{key_in};
  T* saved = Out{saved_out};
  S* y = Out{result};
  std::vector<const S*> v;
  for (const Tensor& state : states) v.push_back(In{state});
  tiles_of<S>(s).for_each([=, &v](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t t = begin; t < end; ++t) {
      T *weights = saved + 3 * t * s.n, *z = weights + s.n, *rstd = z + s.n;
      for (std::size_t i = 0; i < v.size(); ++i) {
        inner_products(1, 1, s.channels, v[i] + t * s.channels, key, z + i, 1);
        inverse_rms_of(1, s.channels, v[i] + t * s.channels, eps, rstd + i);
        z[i] *= rstd[i];
      }
      const T most = *std::max_element(z, z + s.n);
      const auto exp_of = [most](auto d, auto logit) HWY_ATTR { return exp(d, hn::Sub(logit, hn::Set(d, most))); };
      transform(exp_of, s.n, weights, z);
      const T total = std::accumulate(weights, z, T{0});
      for (std::int64_t i = 0; i < s.n; ++i) weights[i] /= total;
      over_channels<T>(s.channels, [&](auto d, std::int64_t first, std::int64_t last)
                                       HWY_ATTR { mix_states(d, first, last, v, t * s.channels, weights, y); });
    }
  });
}

/// dkey += a v and, unless it is null, dv = weight dy + a key + pull v, at the channels [begin, end) of a row.
template <class D, class S, class T>
HWY_INLINE void row_vjp(D d, std::int64_t begin, std::int64_t end, T weight, T a, T pull, const S* v, const S* dy,
                        const T* key, S* dv, T* dkey) {
  for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto x = load(d, v + c);
    hn::StoreU(hn::MulAdd(hn::Set(d, a), x, hn::LoadU(d, dkey + c)), d, dkey + c);
    if (dv == nullptr) continue;
    const auto through_z = hn::MulAdd(hn::Set(d, a), hn::LoadU(d, key + c), hn::Mul(hn::Set(d, pull), x));
    store<Store::cached>(d, hn::MulAdd(hn::Set(d, weight), load(d, dy + c), through_z), dv + c);
  }
}

/// With p_i = <dy, v_i> and dz_i = weights_i (p_i - sum_j weights_j p_j), the above for a = dz_i rstd_i and
/// pull = -dz_i z_i rstd_i^2 / C.
template <class S, class T = Compute<S>>
void vjp(const Tensor& key_in, const std::vector<Tensor>& states, const Tensor& saved_in, const Tensor& cotangent,
         std::vector<Tensor>& gradients) {
  const StreamSizes s = sizes_of(key_in, states);
  const T *key = In{key_in}, *saved = In{saved_in};
  const S* all_dy = In{cotangent};
  std::vector<const S*> v;
  std::vector<S*> dv;
  for (std::size_t i = 0; i < states.size(); ++i) {
    v.push_back(In{states[i]});
    dv.push_back(Out{gradients[1 + i]});
  }
  const auto vjp_tile = [&](T* dkey, std::int64_t begin, std::int64_t end) HWY_ATTR {
    std::vector<T> p(v.size());
    for (std::int64_t t = begin; t < end; ++t) {
      const T *weights = saved + 3 * t * s.n, *z = weights + s.n, *rstd = z + s.n;
      const std::int64_t row = t * s.channels;
      const S* dy = all_dy + row;
      for (std::size_t i = 0; i < v.size(); ++i) inner_products(1, 1, s.channels, dy, v[i] + row, &p[i], 1);
      const T mean = std::inner_product(weights, z, p.begin(), T{0});
      for (std::size_t i = 0; i < v.size(); ++i) {
        const T a = weights[i] * (p[i] - mean) * rstd[i], pull = -a * z[i] * rstd[i] / static_cast<T>(s.channels);
        S* const to = dv[i] == nullptr ? nullptr : dv[i] + row;
        over_channels<T>(s.channels, [&](auto d, std::int64_t first, std::int64_t last) HWY_ATTR {
          row_vjp(d, first, last, weights[i], a, pull, v[i] + row, dy, key, to, dkey);
        });
      }
    }
  };
  sum_over_tiles<T>(tiles_of<S>(s), {{Out{gradients[0]}, s.channels}}, vjp_tile);
}

template <class T>
constexpr AttentionResidualKernels<T> kTable = {.read = read<T>, .vjp = vjp<T>};

braid::kernels::Tables<AttentionResidualKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<AttentionResidualKernels> attention_residual_kernels())
