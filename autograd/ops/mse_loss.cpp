#include <braid/autograd/ops/mse_loss.h>

#include <algorithm>

#include <braid/core/map.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

Tensor scaled(const Tensor& x, double factor) {
  return map(
      "mse_loss", [factor](auto v) { return static_cast<decltype(v)>(factor) * v; }, x);
}

}  // namespace

Var mse_loss(const Var& prediction, const Var& target) {
  check_shape(prediction.shape() == target.shape(),
              "mse_loss: target must have shape {} to match prediction but has {}", prediction.shape(), target.shape());
  const double per_element = 1.0 / static_cast<double>(std::max<std::int64_t>(prediction.value().numel(), 1));
  const Tensor error = map(
      "mse_loss", [](auto a, auto b) { return a - b; }, prediction.value(), target.value());
  const Tensor squares = map(
      "mse_loss", [](auto e) { return e * e; }, error);
  return record(
      "mse_loss", scaled(reduce_sum(squares), per_element), {prediction, target},
      [error, per_element](const Tensor& dy, const Needs& needs) {
        const double factor = 2 * dy.item() * per_element;
        return std::vector{needs[0] ? scaled(error, factor) : Tensor(), needs[1] ? scaled(error, -factor) : Tensor()};
      });
}

}  // namespace braid
