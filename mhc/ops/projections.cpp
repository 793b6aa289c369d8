#include <braid/mhc/ops/projections.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <braid/autograd/ops.h>
#include <braid/core/map.h>
#include <braid/core/reduce.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/sinkhorn.h>

namespace braid::mhc {
namespace {

void check_temperature(const char* op, double temperature) {
  check_value(temperature > 0, "{}: temperature must be > 0 but is {}", op, temperature);
}

/// Projects one line of n values. `sorted` is scratch memory.
template <class T>
void project_line(const T* v, std::int64_t n, std::vector<T>& sorted, T* y) {
  if (!std::all_of(v, v + n, [](T x) { return std::isfinite(x); })) {
    std::fill_n(y, n, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  // The projection ignores a shift of all entries; with the largest at 0, sums lose nothing to large offsets.
  const T top = *std::max_element(v, v + n);
  sorted.assign(v, v + n);
  std::ranges::sort(sorted, std::greater());
  T sum = 0, theta = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const T u = sorted[static_cast<std::size_t>(k)] - top;
    sum += u;
    const T candidate = (sum - 1) / static_cast<T>(k + 1);
    if (u <= candidate) break;
    theta = candidate;
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::max(v[i] - top - theta, T{0});
}

Tensor project_lines(const Tensor& input) {
  const Tensor v = input.contiguous();
  return dispatch_float("simplex_projection", v.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y(v.shape(), v.dtype());
    std::vector<T> sorted;
    const std::int64_t n = v.size(-1);
    const T* from = v.data<T>();
    T* to = y.mutable_data<T>();
    for (std::int64_t i = 0; i < v.numel(); i += n) project_line(from + i, n, sorted, to + i);
    return y;
  });
}

/// 1 on the support of a projection y, 0 elsewhere; NaN for NaN.
Tensor support_of(const Tensor& y) {
  return map(
      "simplex_projection", [](auto y) { return y > 0 ? y / y : y * 0; }, y);
}

/// On the support S of the projection, `v - (sum of v over S - 1) / |S|`; 0 elsewhere.
Var composed_projection(const Var& v) {
  const Tensor support = project_lines(v.value()), count = reduce_sum(support_of(support), {-1}, true);
  return where(support, v - (sum(where(support, v, 0.0), {-1}, true) - 1) / count, 0.0);
}

/// On the support S of y, `dv = dy - mean of dy over S`; 0 elsewhere.
Tensor project_lines_vjp(const Var& dy, const Tensor& y) {
  const Tensor support = support_of(y);
  return support * (dy - sum(dy * support, {-1}, true) / sum(support, {-1}, true));
}

}  // namespace

Var simplex_softmax(const Var& logits, double temperature) {
  check_temperature("simplex_softmax", temperature);
  return softmax(logits / temperature, -1);
}

Var identity_preserving(const Var& logits, double epsilon, double temperature) {
  check_value(epsilon >= 0 && epsilon < 1, "identity_preserving: epsilon must be in [0, 1) but is {}", epsilon);
  check_temperature("identity_preserving", temperature);
  const Var last = eye(logits.size(-1), logits.dtype())[-1];
  return (1 - epsilon) * softmax(logits / temperature, -1) + epsilon * last;
}

Var doubly_stochastic(const Var& logits, double temperature, int iterations) {
  check_temperature("doubly_stochastic", temperature);
  return sinkhorn_knopp(logits / temperature, iterations, Marginal::rows);
}

Var simplex_projection(const Var& v) {
  check_shape(v.rank() >= 1 && v.size(-1) >= 1, "simplex_projection: v must have shape [..., n] with n >= 1 but has {}",
              v.shape());
  if (composed()) return composed_projection(v);
  Tensor y = project_lines(v.value());
  return record("simplex_projection", y, {v}, [y](const Tensor& dy) { return project_lines_vjp(dy, y); });
}

Tensor birkhoff_projection(const Tensor& v) {
  check_shape(v.rank() == 2 && v.size(0) == v.size(1) && v.size(0) >= 1,
              "birkhoff_projection: v must have shape [n, n] with n >= 1 but has {}", v.shape());
  // Dykstra: each projection is handed what it took away the last time.
  Tensor x = v.to(DType::f64), row_debt = zeros(v.shape(), DType::f64), column_debt = row_debt;
  for (int sweep = 0; sweep < 10000; ++sweep) {
    const Tensor before = x, from_rows = x + row_debt;
    x = project_lines(from_rows);
    row_debt = from_rows - x;
    const Tensor from_columns = x + column_debt;
    x = project_lines(from_columns.transpose()).transpose();
    column_debt = from_columns - x;
    if (!(reduce_max(abs(x - before)).item() > 1e-10)) break;  // NaN ends it too
  }
  return x.to(v.dtype()).contiguous();
}

}  // namespace braid::mhc
