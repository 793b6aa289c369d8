#include <braid/mhc/kernels/attention_residual.h>

#include <algorithm>
#include <numeric>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/attention_residual.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

using braid::kernels::HWY_NAMESPACE::exp, braid::kernels::HWY_NAMESPACE::for_each_vector;
using braid::kernels::HWY_NAMESPACE::transform;

/// The states as streams.
StreamSizes sizes_of(const Tensor& key, const std::vector<Tensor>& states) {
  return {states[0].shape().without(-1).numel(), std::ssize(states), key.numel()};
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
        inner_products(1, 1, s.channels, v[i] + t * s.channels, key, z + i);
        inverse_rms_of(1, s.channels, v[i] + t * s.channels, eps, rstd + i);
        z[i] *= rstd[i];
      }
      const T most = *std::max_element(z, z + s.n);
      const auto exp_of = [most](auto d, auto logit) HWY_ATTR { return exp(d, hn::Sub(logit, hn::Set(d, most))); };
      transform(exp_of, s.n, weights, z);
      const T total = std::accumulate(weights, z, T{0});
      for (std::int64_t i = 0; i < s.n; ++i) weights[i] /= total;
      const hn::ScalableTag<T> d;
      for_each_vector(d, s.channels, [=, &v, row = t * s.channels](std::int64_t c, auto part) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::size_t i = 0; i < v.size(); ++i)
          sum = hn::MulAdd(hn::Set(d, weights[i]), part.load(d, v[i] + row + c), sum);
        part.store(sum, d, y + row + c);
      });
    }
  });
}

/// With p_i = <dy, v_i>, a = weights_i (p_i - sum_j weights_j p_j) rstd_i and pull = -a z_i rstd_i / C:
/// dkey += a v_i and, unless it is null, dv_i += weights_i dy + a key + pull v_i.
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
    const hn::ScalableTag<T> d;
    std::vector<T> p(v.size());
    for (std::int64_t t = begin; t < end; ++t) {
      const T *weights = saved + 3 * t * s.n, *z = weights + s.n, *rstd = z + s.n;
      const std::int64_t row = t * s.channels;
      const S* dy = all_dy + row;
      for (std::size_t i = 0; i < v.size(); ++i) inner_products(1, 1, s.channels, dy, v[i] + row, &p[i]);
      const T mean = std::inner_product(weights, z, p.begin(), T{0});
      for (std::size_t i = 0; i < v.size(); ++i) {
        const T a = weights[i] * (p[i] - mean) * rstd[i], pull = -a * z[i] * rstd[i] / static_cast<T>(s.channels);
        const T weight = weights[i];
        for_each_vector(d, s.channels, [=, x = v[i] + row, dx = dv[i]](std::int64_t c, auto part) HWY_ATTR {
          const auto state = part.load(d, x + c);
          part.store(hn::MulAdd(hn::Set(d, a), state, part.load(d, dkey + c)), d, dkey + c);
          if (dx == nullptr) return;
          const auto through_z = hn::MulAdd(hn::Set(d, a), part.load(d, key + c), hn::Mul(hn::Set(d, pull), state));
          const auto change = hn::MulAdd(hn::Set(d, weight), part.load(d, dy + c), through_z);
          part.store(hn::Add(part.load(d, dx + row + c), change), d, dx + row + c);
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
