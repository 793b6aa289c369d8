#include <bit>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/kronecker.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

/// The factors being symmetric, H_ij is q of i xor j, where q [n] is the Kronecker product of the weights (p, 1 - p).
template <class D, int kN>
class Kronecker : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::load, Base::n, Base::set, Base::softmax, Base::softmax_vjp, Base::store;
  using typename Base::T, typename Base::V;

 public:
  using Base::Base;

  std::int64_t workspace() const { return 4 * n(); }

  void forward(const T* logits, T* h, T* workspace) const {
    const T* q = product(logits, workspace);
    for (std::int64_t i = 0; i < n(); ++i)
      for (std::int64_t j = 0; j < n(); ++j) store(h, i * n() + j, load(q, i ^ j));
  }

  /// Of q_2x+d = q'_x w_d: dw_d = sum_x dq_2x+d q'_x and dq'_x = sum_d dq_2x+d w_d, the last factor first.
  void vjp(const T* logits, const T*, const T* dh, T* dlogits, T* workspace) const {
    T *q = product(logits, workspace), *w = workspace, *dq = vector(workspace, 2), *dw = vector(workspace, 3);
    for (std::int64_t x = 0; x < n(); ++x) store(dq, x, diagonal_sum(dh, x));
    std::int64_t width = n() / 2;
    for (std::int64_t f = this->mixing_.logits() - 2; f >= 0; f -= 2, width /= 2) {
      V dw0 = set(0), dw1 = set(0);
      for (std::int64_t x = 0; x < width; ++x) {
        const V before = hn::Add(load(q, 2 * x), load(q, 2 * x + 1));  // the weights sum to 1
        const V d0 = load(dq, 2 * x), d1 = load(dq, 2 * x + 1);
        dw0 = hn::MulAdd(d0, before, dw0);
        dw1 = hn::MulAdd(d1, before, dw1);
        store(q, x, before);
        store(dq, x, hn::MulAdd(d0, load(w, f), hn::Mul(d1, load(w, f + 1))));
      }
      store(dw, f, dw0);
      store(dw, f + 1, dw1);
      softmax_vjp(w, dw, f, 2, dlogits);
    }
  }

 private:
  T* vector(T* workspace, std::int64_t k) const { return workspace + k * n() * this->lanes(); }

  /// The weights [m] are left in the workspace, followed by q.
  T* product(const T* logits, T* workspace) const {
    T *w = workspace, *q = vector(workspace, 1);
    store(q, 0, set(1));
    std::int64_t width = 1;
    for (std::int64_t f = 0; f < this->mixing_.logits(); f += 2, width *= 2) {
      softmax(logits, f, 2, w);
      for (std::int64_t x = width - 1; x >= 0; --x) {
        const V before = load(q, x);
        store(q, 2 * x, hn::Mul(before, load(w, f)));
        store(q, 2 * x + 1, hn::Mul(before, load(w, f + 1)));
      }
    }
    return q;
  }

  V diagonal_sum(const T* dh, std::int64_t x) const {
    V sum = set(0);
    for (std::int64_t i = 0; i < n(); ++i) sum = hn::Add(sum, load(dh, i * n() + (i ^ x)));
    return sum;
  }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Kronecker>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

static Var composed(const Var& logits, const Mixing& m) {
  const Shape lead = logits.shape().without(-1);
  const Tensor rows = Tensor::of<std::int32_t>({4}, {0, 1, 1, 0});
  Var h = ones(lead.concat({1, 1}), logits.dtype());
  for (std::int64_t k = 0, size = 1; size < m.n(); ++k, size *= 2) {
    const Var factor = index_select(softmax(slice(logits, -1, 2 * k, 2 * k + 2)), -1, rows);
    const Var product = reshape(h, lead.concat({size, 1, size, 1})) * reshape(factor, lead.concat({1, 2, 1, 2}));
    h = reshape(product, lead.concat({2 * size, 2 * size}));
  }
  return h;
}

/// KromHC, arXiv:2601.21579: the Kronecker product of log2(n) mixtures of identity and swap,
/// `H = U_1 (x) U_2 (x) .., U = [[p, 1 - p], [1 - p, p]], (p, 1 - p) = softmax(l, l')`. Doubly stochastic to rounding,
/// symmetric, and all commute; no cycle of more than two streams. Starts 6.7e-4 from the identity at n = 4.
extern constinit const Family kronecker = {
    .name = "kronecker",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true, .columns = true}; },
    .sizes = "n = 1, 2, 4, 8, ..",
    .exists = [](std::int64_t n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); },
    .logits = [](std::int64_t n,
                 const MixingSettings&) { return std::int64_t{2} * std::countr_zero(static_cast<std::uint64_t>(n)); },
    .identity = [](std::int64_t, std::int64_t k) { return k % 2 == 0 ? 8.0 : 0.0; },
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE
