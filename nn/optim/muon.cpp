#include <braid/nn/optim/muon.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <utility>

#include <braid/autograd/ops.h>
#include <braid/nn/optim/clip.h>

namespace braid::nn {

bool hidden_matrices(std::string_view name, const Tensor& value) {
  constexpr std::array<std::string_view, 10> kOthers{
      "embedding", "stream_embedding", "positions", "position_bias", "head",
      "b_pre",     "b_post",           "b_res",     "h_res_raw",     "mixing_logits"};
  const auto is_other = [&](auto part) {
    return std::ranges::count(kOthers, std::string_view(part.begin(), part.end())) > 0;
  };
  return value.rank() >= 2 && std::ranges::none_of(std::views::split(name, '.'), is_other);
}

Tensor orthogonalized(const Tensor& x, int iterations) {
  check_shape(x.rank() == 2, "orthogonalized: x must be a matrix but has shape {}", x.shape());
  const bool tall = x.size(0) > x.size(1);  // the smaller A
  const Tensor wide = tall ? x.transpose() : x, *const all[]{&x};
  Var y = wide * (1 / (global_norm(all) + 1e-7));
  for (int i = 0; i < iterations; ++i) {
    const Var a = matmul(y, transpose(y));
    y = 3.4445 * y + matmul(-4.7750 * a + 2.0315 * matmul(a, a), y);
  }
  return tall ? y.value().transpose() : y.value();
}

Muon::Muon(const MuonSettings& settings) : AdamW("Muon", settings.adamw), settings_(settings) {
  check_nonnegative("update_rms", settings.update_rms);
  check_fraction("momentum", settings.momentum);
  check_value(settings.iterations >= 1, "Muon: iterations must be at least 1 but is {}", settings.iterations);
}

std::vector<Optimizer::State> Muon::state_of(std::string_view name, const Tensor& value) const {
  if (!settings_.matrices(name, value)) return AdamW::state_of(name, value);
  check_value(value.rank() >= 2, "Muon: {} must have at least two axes to be a matrix but has shape {}", name,
              value.shape());
  return {{"velocity", value.shape()}};
}

void Muon::apply(const std::vector<Update>& updates, double grad_scale) {
  std::vector<Update> others;
  std::vector<std::pair<Tensor*, Tensor>> changes;  // written at the end, when no more memory is needed
  for (const Update& u : updates) {
    if (!settings_.matrices(u.name, *u.value)) {
      others.push_back(u);
      continue;
    }
    const Var grad = u.grad * grad_scale, velocity = settings_.momentum * *u.state + grad;
    const Var ahead = settings_.nesterov ? grad + settings_.momentum * velocity : velocity;
    const Shape& shape = u.value->shape();
    const std::int64_t rows = shape[0], columns = shape.axes(1, shape.rank()).numel();
    const Tensor matrix = ahead.value().reshape({rows, columns});
    const Tensor direction = orthogonalized(matrix, settings_.iterations).reshape(shape);
    const auto longest = static_cast<double>(std::max(rows, columns));
    const double keep = u.decays ? 1 - lr() * settings_.adamw.weight_decay : 1;
    changes.emplace_back(u.state, velocity.value());
    changes.emplace_back(u.value,
                         (keep * *u.value - lr() * settings_.update_rms * std::sqrt(longest) * direction).value());
  }
  AdamW::apply(others, grad_scale);
  for (auto& [target, value] : changes) *target = std::move(value);
}

}  // namespace braid::nn
