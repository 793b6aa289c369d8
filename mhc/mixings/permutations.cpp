#include <algorithm>
#include <array>
#include <numeric>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/permutations.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

constexpr int kMost = 6;
constexpr std::array<std::int64_t, kMost + 1> kFactorials = {1, 1, 2, 6, 24, 120, 720};
constexpr std::int64_t factorial(std::int64_t n) { return kFactorials[static_cast<std::size_t>(n)]; }

/// All permutations of kMost elements in lexicographic order. The first n! permute only the last n elements.
constexpr auto kOrders = [] {
  std::array<std::array<std::int8_t, kMost>, kFactorials[kMost]> orders{};
  std::array<std::int8_t, kMost> order{};
  std::iota(order.begin(), order.end(), std::int8_t{0});
  for (auto& o : orders) {
    o = order;
    std::next_permutation(order.begin(), order.end());
  }
  return orders;
}();

/// The column of the one in row i of the k-th permutation matrix of n rows.
constexpr std::int64_t column(std::int64_t n, std::int64_t k, std::int64_t i) {
  const std::int64_t fixed = kMost - n;
  return kOrders[static_cast<std::size_t>(k)][static_cast<std::size_t>(fixed + i)] - fixed;
}

template <class D, int kN>
class Permutations : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::load, Base::n, Base::set, Base::softmax, Base::softmax_vjp, Base::store;
  using typename Base::T, typename Base::V;

 public:
  using Base::Base;

  std::int64_t workspace() const { return count(); }

  void forward(const T* logits, T* h, T* weights) const {
    softmax(logits, 0, count(), weights);
    for (std::int64_t e = 0; e < n() * n(); ++e) store(h, e, set(0));
    for (std::int64_t k = 0; k < count(); ++k) {
      const V weight = load(weights, k);
      for (std::int64_t i = 0; i < n(); ++i) store(h, entry(k, i), hn::Add(load(h, entry(k, i)), weight));
    }
  }

  /// The cotangent of the weight of a permutation is the sum of dh over its ones.
  void vjp(const T* logits, const T*, const T* dh, T* dlogits, T* weights) const {
    softmax(logits, 0, count(), weights);
    for (std::int64_t k = 0; k < count(); ++k) {
      V sum = load(dh, entry(k, 0));
      for (std::int64_t i = 1; i < n(); ++i) sum = hn::Add(sum, load(dh, entry(k, i)));
      store(dlogits, k, sum);
    }
    softmax_vjp(weights, dlogits, 0, count(), dlogits);
  }

 private:
  std::int64_t count() const { return factorial(n()); }
  std::int64_t entry(std::int64_t k, std::int64_t i) const { return i * n() + column(n(), k, i); }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Permutations>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

/// Softmax times the permutation matrices [n!, n n].
static Var composed(const Var& logits, const Mixing& m) {
  std::vector<double> ones;
  std::vector<std::int64_t> columns(static_cast<std::size_t>(m.n()));
  std::iota(columns.begin(), columns.end(), 0);
  do {
    for (const std::int64_t one : columns)
      for (std::int64_t j = 0; j < m.n(); ++j) ones.push_back(j == one ? 1 : 0);
  } while (std::next_permutation(columns.begin(), columns.end()));
  const Tensor matrices = Tensor::of<double>({m.logits(), m.n() * m.n()}, ones).to(logits.dtype());
  const Shape lead = logits.shape().without(-1);
  return reshape(matmul(reshape(softmax(logits), lead.concat({1, m.logits()})), matrices), lead.concat({m.n(), m.n()}));
}

/// mHC-lite, arXiv:2601.05732: `h = sum_k softmax(l)_k P_k`, a convex combination of all n! permutation matrices in
/// lexicographic order, P_0 the identity. Doubly stochastic to rounding, and all of those matrices, by Birkhoff's
/// theorem; but there are n! logits, so that n is at most 6.
extern constinit const Family permutations = {
    .name = "permutations",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true, .columns = true}; },
    .sizes = "1 <= n <= 6 (n! logits)",
    .exists = [](std::int64_t n) { return n <= HWY_NAMESPACE::kMost; },
    .logits = [](std::int64_t n, const MixingSettings&) { return HWY_NAMESPACE::factorial(n); },
    .identity = [](std::int64_t, std::int64_t k) { return k == 0 ? 0.0 : -8.0; },
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE
