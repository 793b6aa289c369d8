#include <braid/nn/optim/sgd.h>

#include <cmath>

namespace braid::nn {
namespace {

void check_nonnegative(const char* setting, double value) {
  check_value(std::isfinite(value) && value >= 0, "SGD: {} must be finite and at least 0 but is {}", setting, value);
}

/// What one step multiplies by.
struct Coefficients {
  double lr, penalty, momentum;
  bool nesterov;
  double grad_scale;
};

template <class T>
void descend(const Coefficients& c, const T* grad, T* p, std::int64_t n) {
  const auto lr = static_cast<T>(c.lr), penalty = static_cast<T>(c.penalty), scale = static_cast<T>(c.grad_scale);
  for (std::int64_t i = 0; i < n; ++i) p[i] -= lr * (scale * grad[i] + penalty * p[i]);
}

template <class T>
void descend(const Coefficients& c, const T* grad, T* p, T* velocity, std::int64_t n) {
  const auto lr = static_cast<T>(c.lr), penalty = static_cast<T>(c.penalty), scale = static_cast<T>(c.grad_scale);
  const auto momentum = static_cast<T>(c.momentum);
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = scale * grad[i] + penalty * p[i];
    velocity[i] = momentum * velocity[i] + g;
    p[i] -= lr * (c.nesterov ? g + momentum * velocity[i] : velocity[i]);
  }
}

}  // namespace

SGD::SGD(SGDSettings settings)
    : settings_(std::move(settings)),
      slots_(settings_.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"velocity"}) {
  check_nonnegative("lr", settings_.lr);
  check_nonnegative("weight_decay", settings_.weight_decay);
  check_value(0 <= settings_.momentum && settings_.momentum < 1, "SGD: momentum must be in [0, 1) but is {}",
              settings_.momentum);
  check_value(!settings_.nesterov || settings_.momentum > 0, "SGD: nesterov needs a momentum");
}

void SGD::set_lr(double lr) {
  check_nonnegative("lr", lr);
  settings_.lr = lr;
}

void SGD::apply(const std::vector<Update>& updates, double grad_scale) {
  slots_.prepare_step("SGD", updates);
  std::vector<Coefficients> coefficients;
  for (const Update& u : updates) {
    make_writable(*u.value);
    const double penalty = settings_.decays(u.name, *u.value) ? settings_.weight_decay : 0;
    coefficients.push_back({settings_.lr, penalty, settings_.momentum, settings_.nesterov, grad_scale});
  }
  parallel_for_blocks(blocks_of(updates), [&](std::size_t, const TensorBlock& block) {
    const auto [i, begin, end] = block;
    dispatch_float("SGD", updates[i].value->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* grad = updates[i].grad.data<T>() + begin;
      T* p = updates[i].value->mutable_data<T>() + begin;
      if (settings_.momentum == 0)
        descend(coefficients[i], grad, p, end - begin);
      else
        descend(coefficients[i], grad, p, slots_.at(0, i).mutable_data<T>() + begin, end - begin);
    });
  });
  slots_.count_step();
}

}  // namespace braid::nn
