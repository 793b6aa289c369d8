#include <utility>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/quaternion.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

/// Under the root, so that v = 0 gives 0; lost in rounding beside 1.
constexpr double kEps = 1e-30;

/// Of the quaternion units e_0 = 1, e_1, e_2, e_3, a product e_i e_j is e_(i xor j), or minus that.
constexpr double kSign[4][4] = {{1, 1, 1, 1}, {1, -1, 1, -1}, {1, -1, -1, 1}, {1, 1, -1, -1}};

/// H is the sum of q_i r_j M_ij, where M_ij: e_c -> e_i e_c conj(e_j) has one entry +-1 in each column.
template <class D, int kN>
class Quaternion : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::load, Base::poison, Base::set, Base::store;
  using typename Base::T, typename Base::V;

 public:
  using Base::Base;

  void forward(const T* logits, T* h, T*) const {
    V q[4], r[4];
    unit(logits, 0, q);
    unit(logits, 4, r);
    multiply(q, r, h, std::make_integer_sequence<int, 16>());
  }

  void vjp(const T* logits, const T*, const T* dh, T* dlogits, T*) const {
    V q[4], r[4], dq[4], dr[4];
    const V q_inverse = unit(logits, 0, q), r_inverse = unit(logits, 4, r);
    for (int k = 0; k < 4; ++k) dq[k] = dr[k] = set(0);
    multiply_vjp(q, r, dh, dq, dr, std::make_integer_sequence<int, 16>());
    unit_vjp(q, q_inverse, dq, dlogits, 0);
    unit_vjp(r, r_inverse, dr, dlogits, 4);
  }

 private:
  template <int... kEntries>
  HWY_INLINE void multiply(const V* q, const V* r, T* h, std::integer_sequence<int, kEntries...>) const {
    (store(h, kEntries, entry<kEntries / 4, kEntries % 4>(q, r)), ...);
  }

  /// dq_i = sum_j <dH, M_ij> r_j, dr_j = sum_i <dH, M_ij> q_i
  template <int... kProducts>
  HWY_INLINE void multiply_vjp(const V* q, const V* r, const T* dh, V* dq, V* dr,
                               std::integer_sequence<int, kProducts...>) const {
    (multiply_vjp<kProducts / 4, kProducts % 4>(q, r, dh, dq, dr), ...);
  }

  template <int i, int j>
  HWY_INLINE void multiply_vjp(const V* q, const V* r, const T* dh, V* dq, V* dr) const {
    V d = set(0);
    for (int c = 0; c < 4; ++c) d = add(d, sign(i, c, j), load(dh, (i ^ c ^ j) * 4 + c));
    dq[i] = hn::MulAdd(d, r[j], dq[i]);
    dr[j] = hn::MulAdd(d, q[i], dr[j]);
  }

  /// h_ac
  template <int a, int c>
  HWY_INLINE V entry(const V* q, const V* r) const {
    V sum = set(0);
    for (int i = 0; i < 4; ++i) sum = add(sum, sign(i, c, i ^ c ^ a), hn::Mul(q[i], r[i ^ c ^ a]));
    return sum;
  }

  /// e_i e_c conj(e_j) is e_(i xor c xor j) times this.
  static constexpr double sign(int i, int c, int j) { return kSign[i][c] * kSign[i ^ c][j] * (j == 0 ? 1 : -1); }

  static HWY_INLINE V add(V sum, double sign, V v) { return sign > 0 ? hn::Add(sum, v) : hn::Sub(sum, v); }

  /// q = v / |v| of v = (1 + l_0, l_1, l_2, l_3); returns 1 / |v|. The bound keeps squares from overflowing.
  HWY_INLINE V unit(const T* logits, std::int64_t first, V* q) const {
    constexpr T kBound = static_cast<T>(sizeof(T) == 4 ? 1e18 : 1e150);
    V squares = set(kEps);
    for (int k = 0; k < 4; ++k) {
      const V l = load(logits, first + k), v = hn::Add(l, set(k == 0 ? 1 : 0));
      q[k] = hn::Add(braid::kernels::HWY_NAMESPACE::clamp(this->d_, v, -kBound, kBound), poison(l));
      squares = hn::MulAdd(q[k], q[k], squares);
    }
    const V inverse = hn::Div(set(1), hn::Sqrt(squares));
    for (int k = 0; k < 4; ++k) q[k] = hn::Mul(q[k], inverse);
    return inverse;
  }

  /// dv = (dq - q <q, dq>) / |v|
  HWY_INLINE void unit_vjp(const V* q, V inverse, const V* dq, T* dlogits, std::int64_t first) const {
    V along = set(0);
    for (int k = 0; k < 4; ++k) along = hn::MulAdd(q[k], dq[k], along);
    for (int k = 0; k < 4; ++k) store(dlogits, first + k, hn::Mul(hn::NegMulAdd(q[k], along, dq[k]), inverse));
  }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Quaternion>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {
namespace {

HWY_EXPORT(tables);

/// The matrix whose entry (i, j) is +-1 times the component i xor j of the unit quaternion made of four logits.
Var multiplication(const Var& logits, const std::vector<double>& signs) {
  const double bound = logits.dtype() == DType::f64 ? 1e150 : 1e18;  // keeps squares from overflowing
  const Var v = clamp(logits + Tensor::of<double>({4}, {1, 0, 0, 0}).to(logits.dtype()), -bound, bound);
  const Var unit = v / sqrt(sum(v * v, {-1}, true) + 1e-30);
  const Tensor component = Tensor::of<std::int32_t>({16}, {0, 1, 2, 3, 1, 0, 3, 2, 2, 3, 0, 1, 3, 2, 1, 0});
  return square(index_select(unit, -1, component) * Tensor::of<double>({16}, signs).to(logits.dtype()), 4);
}

Var composed(const Var& logits, const Mixing&) {
  const Var left = multiplication(slice(logits, -1, 0, 4), {1, -1, -1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, -1, 1, 1});
  const Var right = multiplication(slice(logits, -1, 4, 8), {1, 1, 1, 1, -1, 1, -1, 1, -1, 1, 1, -1, -1, -1, 1, 1});
  return matmul(left, right);
}

}  // namespace

/// oHC, arXiv:2609.02672: the streams as a quaternion x, `H x = q x conj(r)` with the unit quaternions
/// `q = v / |v|, v = (1 + l_0, l_1, l_2, l_3)` and r of l_4 .. l_7 alike. That is all of SO(4). Orthogonal to rounding;
/// entries may be negative, and rows do not sum to 1. Starts at the identity, bit for bit.
extern constinit const Family quaternion = {
    .name = "quaternion",
    .traits = [](const MixingSettings&) { return MixingTraits{.orthogonal = true, .negative = true}; },
    .sizes = "n = 4",
    .exists = [](std::int64_t n) { return n == 4; },
    .logits = [](std::int64_t, const MixingSettings&) { return std::int64_t{8}; },
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE
