// The entropic projection onto the doubly stochastic matrices, by Newton's method, for several small matrices at once
// as a vector has lanes of f64. Included once per SIMD target.

#if defined(BRAID_MHC_MIXINGS_NEWTON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_MIXINGS_NEWTON_INL_H_
#undef BRAID_MHC_MIXINGS_NEWTON_INL_H_
#else
#define BRAID_MHC_MIXINGS_NEWTON_INL_H_
#endif

#include <cstdint>
#include <limits>

#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {

/// T_ij = softmax_j(r_ij + beta_j), where beta makes the columns sum to 1. The Hessian of its dual, diag(1^T T) - T^T
/// T, is the Laplacian of a graph whose edges have the conductances w_jk = sum_i T_ij T_ik, for rows sum to 1. It is
/// assembled and eliminated without a subtraction, so that the step and the vjp are accurate for any conductances,
/// those of numerical permutations included. beta of the last node is 0.
template <int kN>
class EntropicProjection : public Lanes<hn::ScalableTag<double>, kN> {
  using D = hn::ScalableTag<double>;
  using Base = Lanes<D, kN>;
  using Base::d_, Base::lanes, Base::load, Base::n, Base::set, Base::store;
  using typename Base::V;
  using Mask = hn::Mask<D>;

 public:
  using Base::Base;

  /// The number of vectors of workspace that either needs.
  std::int64_t workspace() const { return n() * (n() + 3); }

  /// t [n n] of logits r [n n], with column sums exact to `tolerance` or as far as rounding allows.
  void forward(const double* r, double tolerance, double* t, double* workspace) const {
    const Memory m = memory(workspace);
    V largest = hn::Zero(d_);
    for (std::int64_t e = 0; e < n() * n(); ++e) largest = hn::Max(largest, hn::Abs(load(r, e)));
    for (std::int64_t i = 0; i < n(); ++i) Base::softmax(r, i * n(), n(), t);
    for (std::int64_t j = 0; j < n(); ++j) store(m.beta, j, hn::Zero(d_));
    const double eps = std::numeric_limits<double>::epsilon() * static_cast<double>(n());
    const V rounding = hn::MulAdd(largest, set(eps / 4), set(4 * eps));
    iterate(r, set(tolerance), hn::Max(rounding, set(tolerance)), t, m);
    const V poison = Base::nan_unless_finite(r);
    for (std::int64_t e = 0; e < n() * n(); ++e) store(t, e, hn::Add(load(t, e), poison));
  }

  /// g [n n], the cotangent of t, becomes that of the logits: dr = t (g - v 1^T - 1 w^T), where v and w leave rows and
  /// columns of dr with sums 0. The edges that drive w have currents c_jk = sum_i t_ij t_ik (g_ij - g_ik), which stay
  /// on edges while nodes are eliminated: no sum of them meets a conductance that it is not in proportion to.
  void vjp(const double* t, double* g, double* workspace) const {
    const auto [edges, w, beta, growth] = memory(workspace);
    for (std::int64_t j = 0; j < n(); ++j)
      for (std::int64_t k = j + 1; k < n(); ++k) {
        V conductance = hn::Zero(d_), current = hn::Zero(d_);
        for (std::int64_t i = 0; i < n() * n(); i += n()) {
          const V product = hn::Mul(load(t, i + j), load(t, i + k));
          conductance = hn::Add(conductance, product);
          current = hn::MulAdd(product, hn::Sub(load(g, i + j), load(g, i + k)), current);
        }
        store(edges, j * n() + k, conductance);
        store(edges, k * n() + j, current);
      }
    eliminate(edges);
    redirect(edges, w);
    substitute(edges, w);
    for (std::int64_t i = 0; i < n() * n(); i += n()) {
      V sum = hn::Zero(d_), weight = set(1e-290);  // lanes without a matrix are 0
      for (std::int64_t j = 0; j < n(); ++j) {
        const V y = hn::Sub(load(g, i + j), load(w, j));
        store(g, i + j, y);
        sum = hn::MulAdd(load(t, i + j), y, sum);
        weight = hn::Add(weight, load(t, i + j));
      }
      const V v = hn::Div(sum, weight);
      for (std::int64_t j = 0; j < n(); ++j) store(g, i + j, hn::Mul(load(t, i + j), hn::Sub(load(g, i + j), v)));
    }
  }

 private:
  static constexpr int kMostSteps = 500;

  struct Memory {
    double *edges, *step, *beta, *growth;  // [n n], [n], [n], [n]
  };

  Memory memory(double* p) const {
    const std::int64_t row = n() * lanes();
    return {p, p + n() * row, p + (n() + 1) * row, p + (n() + 2) * row};
  }

  /// Newton's method on the convex dual f, from where t is. Along a step d the third derivative of f is at most
  /// max(d) - min(d) =: s times its second, which is why f falls for all of d if s < 1.79, else for d log(1 + s) / s.
  /// A full step leaves a residual of about s times the old one.
  void iterate(const double* r, V tolerance, V rounding, double* t, const Memory& m) const {
    Mask active = hn::Eq(tolerance, tolerance);
    for (int k = 0; k < kMostSteps; ++k) {
      const V residual = residuals(t, m.step);
      active = hn::And(active, hn::Gt(residual, rounding));
      if (hn::AllFalse(d_, active)) return;
      connect(t, braid::kernels::HWY_NAMESPACE::clamp(d_, hn::Mul(residual, residual), 1e-17, 1e-3), m.edges);
      eliminate(m.edges);
      gather(m.edges, m.step);
      substitute(m.edges, m.step);
      const V size = spread(active, m.step);
      const Mask damped = hn::Gt(size, set(1.79));
      advance(damped, size, m);
      rescale(active, damped, r, t, m);
      active = hn::And(active, hn::Gt(hn::Mul(size, residual), tolerance));
    }
  }

  /// 1 - column sums of t, and the sum of their absolute values.
  HWY_INLINE V residuals(const double* t, double* residual) const {
    V total = hn::Zero(d_);
    for (std::int64_t j = 0; j < n(); ++j) {
      V sum = set(1);
      for (std::int64_t i = 0; i < n(); ++i) sum = hn::Sub(sum, load(t, i * n() + j));
      store(residual, j, sum);
      total = hn::Add(total, hn::Abs(sum));
    }
    return total;
  }

  /// The conductances of t, with a leak from all nodes to the last one where they would be too small: without any, the
  /// rounding of residuals would move almost isolated nodes so far that the damped step moves no other.
  HWY_INLINE void connect(const double* t, V leak, double* w) const {
    for (std::int64_t j = 0; j + 1 < n(); ++j)
      for (std::int64_t k = j + 1; k < n(); ++k) {
        V sum = k == n() - 1 ? leak : hn::Zero(d_);
        for (std::int64_t i = 0; i < n() * n(); i += n()) sum = hn::MulAdd(load(t, i + j), load(t, i + k), sum);
        store(w, j * n() + k, sum);
      }
  }

  /// Eliminates the nodes of conductances w_jk, j < k, in turn, which leaves conductances between their neighbors. The
  /// diagonal becomes the reciprocal of the sum of a node's conductances when it is eliminated.
  HWY_INLINE void eliminate(double* w) const {
    for (std::int64_t k = 0; k + 1 < n(); ++k) {
      V sum = set(1e-290);
      for (std::int64_t j = k + 1; j < n(); ++j) sum = hn::Add(sum, load(w, k * n() + j));
      const V inverse = hn::Div(set(1), sum);
      store(w, k * n() + k, inverse);
      for (std::int64_t j = k + 1; j + 1 < n(); ++j) {
        const V share = hn::Mul(load(w, k * n() + j), inverse);
        for (std::int64_t l = j + 1; l < n(); ++l)
          store(w, j * n() + l, hn::MulAdd(share, load(w, k * n() + l), load(w, j * n() + l)));
      }
    }
  }

  /// Updates the currents x_k into the nodes for the elimination of the nodes before them.
  HWY_INLINE void gather(const double* w, double* x) const {
    for (std::int64_t k = 0; k + 1 < n(); ++k) {
      const V scaled = hn::Mul(load(x, k), load(w, k * n() + k));
      for (std::int64_t j = k + 1; j + 1 < n(); ++j) store(x, j, hn::MulAdd(load(w, k * n() + j), scaled, load(x, j)));
    }
  }

  /// The same for currents c_jk of edges, j < k, at entry (k, j): eliminating k distributes its currents among its
  /// neighbors in the same shares.
  HWY_INLINE void redirect(double* w, double* x) const {
    for (std::int64_t k = 0; k + 1 < n(); ++k) {
      V sum = hn::Zero(d_);
      for (std::int64_t j = k + 1; j < n(); ++j) {
        sum = hn::Add(sum, load(w, j * n() + k));
        const V share = hn::Mul(load(w, k * n() + j), load(w, k * n() + k));
        const V current = hn::Mul(load(w, j * n() + k), load(w, k * n() + k));
        for (std::int64_t l = j + 1; l < n(); ++l) {
          const V more = hn::NegMulAdd(current, load(w, k * n() + l), hn::Mul(share, load(w, l * n() + k)));
          store(w, l * n() + j, hn::Add(load(w, l * n() + j), more));
        }
      }
      store(x, k, sum);
    }
  }

  /// Replaces the currents x by the potentials, from the last node, whose potential is 0, to the first.
  HWY_INLINE void substitute(const double* w, double* x) const {
    store(x, n() - 1, hn::Zero(d_));
    for (std::int64_t k = n() - 2; k >= 0; --k) {
      V sum = load(x, k);
      for (std::int64_t j = k + 1; j + 1 < n(); ++j) sum = hn::MulAdd(load(w, k * n() + j), load(x, j), sum);
      store(x, k, hn::Mul(sum, load(w, k * n() + k)));
    }
  }

  /// max(step) - min(step). In lanes that have converged, sets the step to 0 and returns 0.
  HWY_INLINE V spread(Mask active, double* step) const {
    V low = hn::Zero(d_), high = hn::Zero(d_);
    for (std::int64_t j = 0; j + 1 < n(); ++j) {
      const V x = hn::IfThenElseZero(active, load(step, j));
      store(step, j, x);
      low = hn::Min(low, x);
      high = hn::Max(high, x);
    }
    return hn::Sub(high, low);
  }

  HWY_INLINE void advance(Mask damped, V size, const Memory& m) const {
    V share = set(1);
    if (!hn::AllFalse(d_, damped))
      share = hn::IfThenElse(damped, hn::Div(braid::kernels::HWY_NAMESPACE::log1p(d_, size), size), share);
    for (std::int64_t j = 0; j < n(); ++j) {
      const V x = hn::Mul(share, load(m.step, j));
      store(m.beta, j, hn::Add(load(m.beta, j), x));
      store(m.growth, j, j + 1 < n() ? braid::kernels::HWY_NAMESPACE::exp_to_one(d_, x) : set(1));
    }
  }

  /// Updates t after a step. A full step scales its columns, which takes n - 1 exponentials. A damped one recomputes t,
  /// since entries that were rounded to 0 may become larger.
  HWY_INLINE void rescale(Mask active, Mask damped, const double* r, double* t, const Memory& m) const {
    double* row = m.edges;
    const bool again = !hn::AllFalse(d_, damped);
    for (std::int64_t i = 0; i < n() * n(); i += n()) {
      for (std::int64_t j = 0; j < n(); ++j) store(row, j, hn::Mul(load(t, i + j), load(m.growth, j)));
      if (again) replace(damped, r + i * lanes(), m.beta, row);
      V sum = load(row, 0);
      for (std::int64_t j = 1; j < n(); ++j) sum = hn::Add(sum, load(row, j));
      const V inverse = hn::Div(set(1), sum);
      for (std::int64_t j = 0; j < n(); ++j)
        store(t, i + j, hn::IfThenElse(active, hn::Mul(load(row, j), inverse), load(t, i + j)));
    }
  }

  /// row <- exp(r + beta - max(r + beta)) in the given lanes.
  void replace(Mask lanes, const double* r, const double* beta, double* row) const {
    V top = hn::Add(load(r, 0), load(beta, 0));
    for (std::int64_t j = 1; j < n(); ++j) top = hn::Max(top, hn::Add(load(r, j), load(beta, j)));
    for (std::int64_t j = 0; j < n(); ++j) {
      const V x = hn::Sub(hn::Add(load(r, j), load(beta, j)), top);
      store(row, j, hn::IfThenElse(lanes, braid::kernels::HWY_NAMESPACE::exp_to_one(d_, x), load(row, j)));
    }
  }
};

}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
