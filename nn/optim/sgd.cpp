#include <braid/nn/optim/sgd.h>

#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {

SGD::SGD(const SGDSettings& settings)
    : Optimizer("SGD", settings.lr,
                settings.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"velocity"},
                settings.decays),
      settings_(settings) {
  check_nonnegative("weight_decay", settings.weight_decay);
  check_fraction("momentum", settings.momentum);
  check_value(!settings.nesterov || settings.momentum > 0, "SGD: nesterov needs a momentum");
}

void SGD::apply(const std::vector<Update>& updates, double grad_scale) {
  for_each_block("SGD", updates, &Update::value, [&]<class T>(T, const TensorBlock& block) {
    const Update& u = updates[block.tensor];
    const auto rate = static_cast<T>(lr()), penalty = static_cast<T>(u.decays ? settings_.weight_decay : 0);
    const auto momentum = static_cast<T>(settings_.momentum), scale = static_cast<T>(grad_scale);
    const bool nesterov = settings_.nesterov;
    const T* grad = u.grad.data<T>();
    T* p = u.value->mutable_data<T>();
    T* velocity = settings_.momentum == 0 ? nullptr : u.state->mutable_data<T>();
    for (std::int64_t i = block.begin, end = block.end; i < end; ++i) {
      T g = scale * grad[i] + penalty * p[i];
      if (velocity != nullptr) {
        velocity[i] = momentum * velocity[i] + g;
        g = nesterov ? g + momentum * velocity[i] : velocity[i];
      }
      p[i] -= rate * g;
    }
  });
}

}  // namespace braid::nn
