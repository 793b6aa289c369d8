#include <braid/autograd/ops/mse_loss.h>

#include <functional>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/reduce_losses.h>

namespace braid {
namespace {

/// dprediction = 2 dy error = -dtarget
Tensor backward(const Tensor& dy, const Tensor& error, int sign) {
  return map(
      "mse_loss", [sign](auto dy, auto e) { return static_cast<decltype(e)>(2 * sign) * dy * e; }, dy, error);
}

Var composed(const Var& prediction, const Var& target) {
  const Var error = prediction - target;
  return error * error;
}

}  // namespace

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
  const Var losses = record("mse_loss", squares, {prediction, target}, [error](const Tensor& dy, const Needs& needs) {
    return std::vector{needs[0] ? backward(dy, error, 1) : Tensor(), needs[1] ? backward(dy, error, -1) : Tensor()};
  });
  return detail::reduce_losses(losses, reduction);
}

}  // namespace braid
