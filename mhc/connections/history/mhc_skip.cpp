#include <braid/mhc/connections/history/mhc_skip.h>

#include <algorithm>
#include <array>

#include <braid/autograd/ops.h>
#include <braid/core/detail/enum_named.h>
#include <braid/mhc/ops/weighted_sum.h>
#include <braid/mhc/streams/connection_hook.h>

namespace braid::mhc {
namespace {

using braid::detail::enum_named;

/// [k] or [k, k], for each of these 1 where the current state is mixed into itself.
Tensor initial_parameters(const MHCSkipSettings& s) {
  const std::int64_t k = s.max_history;
  const bool matrix = s.mode == SkipMode::mhc && s.constraint.matrix;
  const bool raw = s.mode == SkipMode::hc || s.projection != SkipProjection::forward;  // weights, not logits
  const Tensor current = matrix ? eye(k, s.dtype) : eye(k, s.dtype).select(0, k - 1).clone();
  if (s.init == SkipInit::identity) return raw ? current : (10 * Var(current) - 10).value();
  const bool uniform = s.init == SkipInit::uniform;
  return full(current.shape(), raw && uniform ? 1 / static_cast<double>(k) : 0, s.dtype);
}

Var last_row(const Var& weights) { return weights.rank() == 1 ? weights : weights[-1]; }

/// The last k entries of every axis.
Var window(Var logits, std::int64_t k) {
  for (int axis = 0; axis < logits.rank(); ++axis)
    logits = slice(logits, axis, logits.size(axis) - k, logits.size(axis));
  return logits;
}

/// The history as streams: the next states (y, x_l, ..) of a window of k are a companion matrix times the present ones.
StreamMaps companion_maps(const Var& weights, std::int64_t size) {
  const std::int64_t k = weights.size(0);
  const std::vector<double> w = weights.value().to_vector<double>();
  std::vector<double> h(static_cast<std::size_t>(size * size), 0.0);
  for (std::int64_t i = 0; i < k; ++i) h[static_cast<std::size_t>(i)] = w[static_cast<std::size_t>(k - 1 - i)];
  for (std::int64_t i = 1; i < size; ++i) h[static_cast<std::size_t>(i * size + i - 1)] = 1;
  const Var none = zeros({size}, DType::f64);
  return {none, none, Tensor::of<double>({size, size}, h), /*gated=*/false};
}

}  // namespace

SkipMode skip_mode(std::string_view name) {
  return enum_named<SkipMode>("MHCSkip: mode", std::to_array<std::string_view>({"residual", "hc", "mhc"}), name);
}

SkipProjection skip_projection(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>({"forward", "post_step", "none"});
  return enum_named<SkipProjection>("MHCSkip: projection", kNames, name);
}

SkipInit skip_init(std::string_view name) {
  return enum_named<SkipInit>("MHCSkip: init", std::to_array<std::string_view>({"identity", "uniform", "zeros"}), name);
}

MHCSkip::MHCSkip(const MHCSkipSettings& settings) : settings(settings) {
  check_value(settings.max_history >= 1, "MHCSkip: max_history must be >= 1 but is {}", settings.max_history);
  if (settings.mode == SkipMode::residual) return;
  mixing_logits = initial_parameters(settings);
  project();
}

Var MHCSkip::weights(std::int64_t k) const {
  check_value(k >= 1 && k <= settings.max_history, "MHCSkip: k must be in [1, {}] but is {}", settings.max_history, k);
  if (settings.mode == SkipMode::residual) return eye(k, settings.dtype).select(0, k - 1);
  const Var z = window(mixing_logits, k);
  if (settings.mode == SkipMode::hc || settings.projection == SkipProjection::none) return last_row(z);
  if (settings.projection == SkipProjection::forward) return last_row(settings.constraint.weights(z));
  if (k == settings.max_history) return last_row(z);
  const Tensor projected = settings.constraint.project(z.value());
  return last_row(z + (Var(projected) - detach(z)));
}

Var MHCSkip::operator()(const Var& x, std::span<const Var> history) const {
  for (std::size_t i = 0; i < history.size(); ++i)
    check_shape(history[i].shape() == x.shape(), "MHCSkip: history[{}] must have the shape {} of x but has {}", i,
                x.shape(), history[i].shape());
  if (history.empty()) return x;
  const std::int64_t k = std::min(settings.max_history, static_cast<std::int64_t>(history.size()));
  const Var alpha = weights(k);
  const std::span<const Var> states = history.last(static_cast<std::size_t>(k));
  if (ConnectionHook* hook = ConnectionHook::active())
    hook->record(companion_maps(alpha, settings.max_history), stack(states, -2));
  if (settings.mode == SkipMode::residual) return x + states.back();
  return weighted_sum(x, alpha, states);
}

void MHCSkip::project() {
  if (settings.mode != SkipMode::mhc || settings.projection != SkipProjection::post_step) return;
  mixing_logits.mutable_value() = settings.constraint.project(mixing_logits.value());
}

}  // namespace braid::mhc
