#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <braid/autograd/ops.h>
#include <braid/core/parallel.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/newton.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>
#include <braid/mhc/mixings/newton-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

/// Solves in f64: a vector of f32 is two of them.
template <class D, int kN>
class Newton : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::lanes, Base::n;
  using typename Base::T;
  using Wide = hn::ScalableTag<double>;

 public:
  explicit Newton(const Mixing& m) : Base(m), solver_(m) {}

  /// An f64 vector has the bytes of a vector of T, but for HWY_SCALAR, where both have one lane.
  std::int64_t workspace() const {
    constexpr std::int64_t kWider = sizeof(double) / sizeof(T);
    return (2 * n() * n() + solver_.workspace()) * kWider * wide_lanes() / lanes();
  }

  void forward(const T* logits, T* h, T* workspace) const {
    auto* r = reinterpret_cast<double*>(workspace);
    double *t = r + size(), *rest = t + size();
    for (std::int64_t part = 0; part < lanes(); part += wide_lanes()) {
      convert(logits + part, lanes(), r, wide_lanes());
      solver_.forward(r, kTolerance, t, rest);
      convert(t, wide_lanes(), h + part, lanes());
    }
  }

  void vjp(const T*, const T* h, const T* dh, T* dlogits, T* workspace) const {
    auto* t = reinterpret_cast<double*>(workspace);
    double *g = t + size(), *rest = g + size();
    for (std::int64_t part = 0; part < lanes(); part += wide_lanes()) {
      convert(h + part, lanes(), t, wide_lanes());
      convert(dh + part, lanes(), g, wide_lanes());
      solver_.vjp(t, g, rest);
      convert(g, wide_lanes(), dlogits + part, lanes());
    }
  }

 private:
  static constexpr double kTolerance = sizeof(T) == 4 ? 1e-9 : 1e-15;

  static std::int64_t wide_lanes() { return static_cast<std::int64_t>(hn::Lanes(Wide())); }
  std::int64_t size() const { return n() * n() * wide_lanes(); }

  /// As many lanes of every entry as an f64 vector has.
  void convert(const auto* from, std::int64_t from_step, auto* to, std::int64_t to_step) const {
    for (std::int64_t e = 0; e < n() * n(); ++e, from += from_step, to += to_step) std::copy_n(from, wide_lanes(), to);
  }

  EntropicProjection<kN> solver_;
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Newton>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {
namespace {

HWY_EXPORT(tables);

/// p_j - p_k [n, n] of the potentials p of a network in which the conductance (w_jk + w_kj) / 2 connects nodes j and k,
/// and a current c_jk - c_kj enters j and leaves k. Eliminates nodes and keeps currents on edges, as newton-inl.h does,
/// which is accurate for any conductances if the currents are in proportion to them.
void solve_network(const double* w, const double* c, std::int64_t n, double* differences) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> edges(size * size), currents(size * size), potentials(size);
  for (std::size_t j = 0; j < size; ++j)
    for (std::size_t k = j + 1; k < size; ++k) {
      edges[j * size + k] = (w[j * size + k] + w[k * size + j]) / 2;
      currents[j * size + k] = c[j * size + k] - c[k * size + j];
    }
  for (std::size_t k = 0; k < size; ++k) {
    double *edge = &edges[k * size], *current = &currents[k * size];
    const double sum = std::accumulate(edge + k + 1, edge + size, 1e-290);  // 0 where rounding isolates a node
    for (std::size_t j = k + 1; j < size; ++j) edge[j] /= sum, current[j] /= sum;
    for (std::size_t j = k + 1; j < size; ++j)
      for (std::size_t l = j + 1; l < size; ++l) {
        edges[j * size + l] += edge[j] * edge[l] * sum;
        currents[j * size + l] += (edge[j] * current[l] - current[j] * edge[l]) * sum;
      }
  }
  for (std::size_t k = size; k-- > 0;)
    for (std::size_t j = k + 1; j < size; ++j)
      potentials[k] += currents[k * size + j] + edges[k * size + j] * potentials[j];
  for (std::size_t j = 0; j < size; ++j)
    for (std::size_t k = 0; k < size; ++k) differences[j * size + k] = potentials[j] - potentials[k];
}

/// solve_network of w and c [.., n, n]. It is linear in c and its own transpose; if dp gives q, dw is -p q / 2.
Var network(const Var& w, const Var& c) {
  const Tensor conductances = w.value().contiguous(), currents = c.value().contiguous();
  Tensor p(w.shape(), DType::f64);
  const std::int64_t n = w.size(-1);
  double* potentials = p.mutable_data<double>();
  parallel_for(p.numel() / (n * n), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * n * n; at < end * n * n; at += n * n)
      solve_network(conductances.data<double>() + at, currents.data<double>() + at, n, potentials + at);
  });
  const auto vjp = [](const Var& dp, const Var& w, const Var& p) {
    const Var q = network(w, dp);
    return std::vector<Var>{-0.5 * p * q, q};
  };
  return record(
      "network", p, {w, c}, [=](const Tensor& dp) { return vjp(dp, conductances, p); },
      [=](const Applied& op) { return vjp(op.dy(), op.x(0), op.y()); });
}

/// The projection of r [.., n, n] by Newton's method; newton-inl.h has the reasons for its steps.
Tensor project(const Tensor& r) {
  constexpr double kTolerance = 1e-15, kEps = std::numeric_limits<double>::epsilon();
  const auto n = static_cast<double>(r.size(-1));
  const Var rounding = maximum(kEps * n * (max(abs(r), {-2, -1}, true) / 4 + 4), kTolerance);
  const Var last = slice(eye(r.size(-1), DType::f64), 0, -1, r.size(-1));
  Var beta = zeros(last.shape(), DType::f64), t = softmax(r), active = ones(rounding.shape(), DType::f64);
  for (int k = 0; k < 500; ++k) {
    const Var residuals = 1 - sum(t, {-2}, true), residual = sum(abs(residuals), {-1}, true);  // [.., 1, n], [.., 1, 1]
    active = where(greater(residual, rounding), active, 0);
    if (sum(active).item() == 0) break;
    const Var leak = clamp(residual * residual, 1e-17, 1e-3);
    const Var potentials = network(matmul(transpose(t), t) + leak * last, transpose(residuals) * last);
    const Var step = where(active.value(), transpose(slice(potentials, -1, -1, r.size(-1))), 0);
    const Var size = max(step, {-1}, true) - min(step, {-1}, true);
    beta = beta + where(less(size, 1.79), 1, log1p(size) / size) * step;
    t = softmax(r + beta);
    active = where(greater(size * residual, kTolerance), active, 0);
  }
  return t.value();
}

/// dr = t (g - v 1^T - 1 w^T), where v and w leave rows and columns of dr with sums 0. Only differences of w are used:
/// nodes would add up the currents that drive w and round away those of small conductances.
Var project_vjp(const Var& g, const Var& t) {
  const Var w = network(matmul(transpose(t), t), matmul(transpose(t * g), t));  // [.., n, n], w_j - w_k
  const Var y = g + matmul(t, w);                                               // g_ij - sum_k t_ik (w_j - w_k)
  return t * (y - sum(t * g, {-1}, true));
}

/// The vjp reads nothing but the result, and so does its rule: by the implicit function theorem, derivatives of any
/// order are exact.
Var composed(const Var& logits, const Mixing& m) {
  const Var r = cast(square(logits, m.n()), DType::f64);
  const Tensor t = project(r.value());
  const Var h = record(
      "entropic_projection", t, {r}, [t](const Tensor& g) { return project_vjp(g, t); },
      [](const Applied& op) { return project_vjp(op.dy(), op.y()); });
  return cast(h, logits.dtype());
}

}  // namespace

/// The entropic projection onto the doubly stochastic matrices (the problem of arXiv:2606.07574), where Sinkhorn-Knopp
/// converges to: `h_ij = exp(l_ij + alpha_i + beta_j)` with rows and columns that sum to 1. Newton's method solves the
/// dual for beta in f64 whatever the dtype, and the implicit function theorem gives the gradient: as there is nothing
/// to unroll, and no iteration to choose, both are exact to rounding. Steps at n = 4, median (99 % need no more):
///
///     standard deviation of the logits     1         3         10        30
///     f64                                  5 (6)     6 (8)    11 (19)   24 (48)
///     f32                                  4 (5)     5 (8)    10 (18)   22 (40)
///
/// After 500 steps, which takes logits of some 1000, the rows still sum to 1, but columns need not.
extern constinit const Family newton = {
    .name = "newton",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true, .columns = true}; },
    .logits = [](std::int64_t n, const MixingSettings&) { return n * n; },
    .identity = diagonal_logit,
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE
