#include <bench/mixing_convergence.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <bench/statistics.h>
#include <braid/core/reduce.h>
#include <braid/mhc/mixings/mixing.h>

namespace braid::bench {
namespace {

constexpr std::size_t kN = 4;

void add(Convergence& convergence, const std::vector<double>& errors) {
  convergence.median.push_back(percentile(errors, 0.5));
  convergence.p99.push_back(percentile(errors, 0.99));
}

/// The steps of mhc/mixings/newton-inl.h on one matrix: t = softmax(r + beta), and t^T t are the weights of a graph
/// whose Laplacian is the Hessian of the dual.
class Newton {
 public:
  explicit Newton(const double* r) : r_(r) { scale(); }

  double column_error() const {
    return std::abs(*std::ranges::max_element(g_, {}, [](double g) { return std::abs(g); }));
  }

  void step() {
    double residual = 0;
    for (const double g : g_) residual += std::abs(g);
    const auto [low, high] = std::ranges::minmax(solve(std::min(residual * residual, 1e-3)));
    const double size = high - low, share = size < 1.79 ? 1 : std::log1p(size) / size;
    for (std::size_t j = 0; j < kN; ++j) beta_[j] += share * step_[j];
    scale();
  }

 private:
  /// t = softmax(r + beta), g = its column sums - 1
  void scale() {
    g_.fill(-1);
    for (std::size_t i = 0; i < kN; ++i) {
      std::array<double, kN> row;
      for (std::size_t j = 0; j < kN; ++j) row[j] = r_[i * kN + j] + beta_[j];
      const double top = std::ranges::max(row);
      double sum = 0;
      for (double& x : row) sum += x = std::exp(x - top);
      for (std::size_t j = 0; j < kN; ++j) g_[j] += t_[i][j] = row[j] / sum;
    }
  }

  /// The step with the last node's at 0: eliminates the other nodes in turn, which adds weights and never subtracts.
  const std::array<double, kN>& solve(double leak) {
    std::array<std::array<double, kN>, kN> w{};
    for (std::size_t j = 0; j < kN; ++j)
      for (std::size_t k = 0; k < kN; ++k) {
        w[j][k] = k + 1 == kN ? leak : 0;
        for (std::size_t i = 0; i < kN; ++i) w[j][k] += t_[i][j] * t_[i][k];
      }
    for (std::size_t j = 0; j < kN; ++j) step_[j] = -g_[j];
    std::array<double, kN> total{};
    for (std::size_t k = 0; k + 1 < kN; ++k) {
      total[k] = 1e-290;
      for (std::size_t j = k + 1; j < kN; ++j) total[k] += w[k][j];
      for (std::size_t j = k + 1; j < kN; ++j) {
        const double share = w[k][j] / total[k];
        step_[j] += share * step_[k];
        for (std::size_t l = k + 1; l < kN; ++l) w[j][l] += share * w[k][l];
      }
    }
    step_[kN - 1] = 0;
    for (std::size_t k = kN - 1; k-- > 0;) {
      for (std::size_t j = k + 1; j < kN; ++j) step_[k] += w[k][j] * step_[j];
      step_[k] /= total[k];
    }
    return step_;
  }

  const double* r_;
  std::array<std::array<double, kN>, kN> t_;
  std::array<double, kN> beta_{}, g_, step_;
};

}  // namespace

Convergence sinkhorn_convergence(const Tensor& logits, int iterations) {
  Convergence convergence;
  for (int k = 1; k <= iterations; ++k) {
    const mhc::Mixing sinkhorn("sinkhorn", kN, {.iterations = k});
    const std::vector<double> sums = reduce_sum(sinkhorn(logits).value(), {-2}).to_vector<double>();
    std::vector<double> errors(sums.size() / kN);
    for (std::size_t e = 0; e < sums.size(); ++e) errors[e / kN] = std::max(errors[e / kN], std::abs(sums[e] - 1));
    add(convergence, errors);
  }
  return convergence;
}

Convergence newton_convergence(const Tensor& logits, int steps) {
  std::vector<Newton> solvers;
  for (std::int64_t e = 0; e < logits.numel(); e += std::int64_t{kN * kN})
    solvers.emplace_back(logits.data<double>() + e);
  Convergence convergence;
  for (int k = 0; k <= steps; ++k) {
    std::vector<double> errors;
    for (Newton& solver : solvers) {
      errors.push_back(solver.column_error());
      solver.step();
    }
    add(convergence, errors);
  }
  return convergence;
}

}  // namespace braid::bench
