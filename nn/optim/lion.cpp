#include <braid/nn/optim/lion.h>

#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {

Lion::Lion(const LionSettings& settings)
    : Optimizer("Lion", settings.lr, {"first_moment"}, settings.decays), settings_(settings) {
  check_nonnegative("weight_decay", settings.weight_decay);
  check_fraction("beta1", settings.beta1);
  check_fraction("beta2", settings.beta2);
}

void Lion::apply(const std::vector<Update>& updates, double grad_scale) {
  for_each_block("Lion", updates, &Update::value, [&]<class T>(T, const TensorBlock& block) {
    const Update& u = updates[block.tensor];
    const T rate = static_cast<T>(lr()), keep = static_cast<T>(u.decays ? 1 - lr() * settings_.weight_decay : 1);
    const T beta1 = static_cast<T>(settings_.beta1), beta2 = static_cast<T>(settings_.beta2);
    const T* grad = u.grad.data<T>();
    T *p = u.value->mutable_data<T>(), *m = u.state->mutable_data<T>();
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const T g = static_cast<T>(grad_scale) * grad[i], direction = m[i] + (1 - beta1) * (g - m[i]);
      p[i] = keep * p[i] - rate * static_cast<T>((direction > 0) - (direction < 0));
      m[i] += (1 - beta2) * (g - m[i]);
    }
  });
}

}  // namespace braid::nn
