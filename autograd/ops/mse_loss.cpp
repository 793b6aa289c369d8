#include <braid/autograd/ops/mse_loss.h>

#include <functional>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/reduce_losses.h>

namespace braid {

static Var composed(const Var& prediction, const Var& target) {
  const Var error = prediction - target;
  return error * error;
}

Var mse_loss(const Var& prediction, const Var& target, Reduction reduction) {
  if (prediction.dtype() == DType::bf16)
    return mse_loss(detail::widened(prediction), detail::widened(target), reduction);
  check_floating("mse_loss", prediction.dtype());
  check_shape(prediction.shape() == target.shape(),
              "mse_loss: target must have shape {} to match prediction but has {}", prediction.shape(), target.shape());
  check_same_dtype("mse_loss", prediction.value(), target.value());
  if (Composed::active()) return detail::reduce_losses(composed(prediction, target), reduction);
  const Tensor error = map("mse_loss", std::minus(), prediction.value(), target.value());
  const Tensor squares = map(
      "mse_loss", [](auto e) { return e * e; }, error);
  // dprediction = 2 dy error = -dtarget
  const Var losses = record("mse_loss", squares, {prediction, target}, [error](const Tensor& dy, const Needs& needs) {
    auto vjp = [](auto dy, auto e) { return 2 * dy * e; };
    auto vjp_target = [](auto dy, auto e) { return -2 * dy * e; };
    return std::array{needs[0] ? map("mse_loss", vjp, dy, error) : Tensor(),
                      needs[1] ? map("mse_loss", vjp_target, dy, error) : Tensor()};
  });
  return detail::reduce_losses(losses, reduction);
}

}  // namespace braid
