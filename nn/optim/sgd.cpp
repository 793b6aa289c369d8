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

template <class T>
void descend(Coefficients<T> c, const T* grad, T* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] -= c.lr * (c.grad_scale * grad[i] + c.penalty * p[i]);
}

template <class T>
void descend(Coefficients<T> c, const T* grad, T* p, T* velocity, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = c.grad_scale * grad[i] + c.penalty * p[i];
    velocity[i] = c.momentum * velocity[i] + g;
    p[i] -= c.lr * (c.nesterov ? g + c.momentum * velocity[i] : velocity[i]);
  }
}

}  // namespace

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
      const T* grad = u.grad.data<T>() + block.begin;
      T* p = u.value->mutable_data<T>() + block.begin;
      if (settings_.momentum == 0)
        descend(c, grad, p, block.end - block.begin);
      else
        descend(c, grad, p, u.state->mutable_data<T>() + block.begin, block.end - block.begin);
    });
  });
}

}  // namespace braid::nn
