#include <braid/nn/optim/sgd.h>

#include <ranges>

#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {
namespace {

/// The factors of one step for one parameter.
template <class T>
struct Coefficients {
  T lr, penalty, momentum, grad_scale;
  bool nesterov;
};

/// `velocity` is null without a momentum.
template <class T>
void descend(Coefficients<T> c, const T* grad, T* p, T* velocity, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    T g = c.grad_scale * grad[i] + c.penalty * p[i];
    if (velocity != nullptr) {
      velocity[i] = c.momentum * velocity[i] + g;
      g = c.nesterov ? g + c.momentum * velocity[i] : velocity[i];
    }
    p[i] -= c.lr * g;
  }
}

}  // namespace

SGD::SGD(const SGDSettings& settings)
    : Optimizer("SGD", settings.lr,
                settings.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"velocity"},
                settings.decays),
      settings_(settings) {
  check_nonnegative("weight_decay", settings.weight_decay);
  check_value(0 <= settings.momentum && settings.momentum < 1, "SGD: momentum must be in [0, 1) but is {}",
              settings.momentum);
  check_value(!settings.nesterov || settings.momentum > 0, "SGD: nesterov needs a momentum");
}

void SGD::apply(const std::vector<Update>& updates, double grad_scale) {
  const auto values = updates | std::views::transform(&Update::value);
  parallel_for_blocks(cut_into_blocks(values), [&](std::size_t, const TensorBlock& block) {
    const Update& u = updates[block.tensor];
    dispatch_float("SGD", u.value->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Coefficients<T> c{.lr = static_cast<T>(lr()),
                              .penalty = static_cast<T>(u.decays ? settings_.weight_decay : 0),
                              .momentum = static_cast<T>(settings_.momentum),
                              .grad_scale = static_cast<T>(grad_scale),
                              .nesterov = settings_.nesterov};
      T* velocity = settings_.momentum == 0 ? nullptr : u.state->mutable_data<T>() + block.begin;
      descend(c, u.grad.data<T>() + block.begin, u.value->mutable_data<T>() + block.begin, velocity,
              block.end - block.begin);
    });
  });
}

}  // namespace braid::nn
