#include <braid/nn/optim/adafactor.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <braid/autograd/ops.h>
#include <braid/nn/optim/clip.h>

namespace braid::nn {

static double root_mean_square(const Tensor& t) {
  const Tensor* const all[]{&t};
  return global_norm(all) / std::sqrt(static_cast<double>(t.numel()));
}

Adafactor::Adafactor(const AdafactorSettings& s) : Optimizer("Adafactor", s.lr, {}, s.decays), settings_(s) {
  check_nonnegative("eps1", s.eps1.value_or(0));
  check_nonnegative("eps2", s.eps2);
  check_nonnegative("weight_decay", s.weight_decay);
  check_value(std::isfinite(s.clip) && s.clip > 0, "Adafactor: clip must be finite and positive but is {}", s.clip);
  check_value(std::isfinite(s.beta2_decay) && s.beta2_decay <= 0,
              "Adafactor: beta2_decay must be finite and at most 0 but is {}", s.beta2_decay);
}

std::vector<Optimizer::State> Adafactor::state_of(std::string_view, const Tensor& value) const {
  if (value.rank() < 2) return {{"variance", value.shape()}};
  return {{"row_variance", reduced_shape("Adafactor", value.shape(), -1, true)},
          {"column_variance", reduced_shape("Adafactor", value.shape(), -2, true)}};
}

void Adafactor::apply(const std::vector<Update>& updates, double grad_scale) {
  const auto t = static_cast<double>(steps() + 1);
  const double fresh = std::pow(t, settings_.beta2_decay), rate = std::min(lr(), 1 / std::sqrt(t));
  std::vector<std::pair<Tensor*, Tensor>> changes;  // written at the end, when no more memory is needed
  for (const Update& u : updates) {
    if (u.value->numel() == 0) continue;
    const Var p = *u.value, grad = u.grad * grad_scale, squares = grad * grad;
    const auto follow = [&](Tensor& average, const Var& now) {
      const Var next = average + fresh * (now - average);
      changes.emplace_back(&average, next.value());
      return next;
    };
    const double epsilon =
        u.value->dtype() == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
    const double eps1 = settings_.eps1.value_or(epsilon);
    Var variance;
    if (p.rank() < 2) {
      variance = follow(*u.state, squares);
    } else {
      const Var rows = follow(u.state[0], mean(squares, -1, true)),
                columns = follow(u.state[1], mean(squares, -2, true));
      variance = rows * columns / maximum(mean(rows, -2, true), eps1);
    }
    const Var update = grad * rsqrt(maximum(variance, eps1 * eps1));
    const double clipping = std::max(1.0, root_mean_square(update.value()) / settings_.clip);
    const double alpha = std::max(settings_.eps2, root_mean_square(*u.value)) * rate;
    const double keep = u.decays ? 1 - lr() * settings_.weight_decay : 1;
    changes.emplace_back(u.value, (keep * p - alpha / clipping * update).value());
  }
  for (auto& [target, value] : changes) *target = std::move(value);
}

}  // namespace braid::nn
