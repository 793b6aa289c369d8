#include <braid/nn/experts.h>

#include <cmath>
#include <numeric>

#include <braid/autograd/ops.h>
#include <braid/core/detail/indexing.h>
#include <braid/nn/init.h>

namespace braid::nn {
namespace {

/// How many of the tokens' choices each expert got. [E]
std::vector<std::int64_t> loads(const Tensor& experts, std::int64_t count) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(count));
  check_dtype(experts.dtype() == DType::i32, "Experts: experts must be i32 but are {}", name(experts.dtype()));
  for (const std::int32_t e : experts.to_vector<std::int32_t>()) {
    check_value(0 <= e && e < count, "Experts: an expert must be in [0, {}) but is {}", count, e);
    ++loads[static_cast<std::size_t>(e)];
  }
  return loads;
}

/// The choices [N, top] sorted by expert: where each expert's begin, the tokens in that order, and the place of each
/// choice in it, both [N top] i32.
struct Order {
  std::vector<std::int64_t> begins{0};
  Tensor tokens, places;

  Order(const Tensor& experts, std::int64_t count)
      : tokens({experts.numel()}, DType::i32), places({experts.numel()}, DType::i32) {
    for (const std::int64_t load : loads(experts, count)) begins.push_back(begins.back() + load);
    std::vector<std::int64_t> next = begins;
    const Tensor flat = experts.contiguous();
    std::int32_t *token = tokens.mutable_data<std::int32_t>(), *place = places.mutable_data<std::int32_t>();
    for (std::int64_t choice = 0; choice < flat.numel(); ++choice) {
      const std::int64_t at = next[static_cast<std::size_t>(flat.data<std::int32_t>()[choice])]++;
      token[at] = static_cast<std::int32_t>(choice / experts.size(1));
      place[choice] = static_cast<std::int32_t>(at);
    }
  }
};

/// For each token id `top` experts in a row, from a random one on. [by_token, top]
Tensor random_table(const ExpertsSettings& s, Rng& rng) {
  const Tensor first = randint(0, s.experts, {s.by_token}, rng);
  Tensor table({s.by_token, s.top}, DType::i32);
  for (std::int64_t i = 0; i < table.numel(); ++i)
    table.mutable_data<std::int32_t>()[i] =
        static_cast<std::int32_t>((first.data<std::int32_t>()[i / s.top] + i % s.top) % s.experts);
  return table;
}

Var tokens_of(const Var& x) { return reshape(x, {-1, x.size(-1)}); }

/// What the router says of the tokens of x. [N, E]
Var scores(const Experts& m, const Var& x) {
  const Var logits = linear(cast(tokens_of(x), m.router.dtype()), m.router);
  switch (m.settings.routing) {
    case Routing::softmax: return softmax(logits);
    case Routing::sigmoid: return sigmoid(logits);
    case Routing::sqrt_softplus: break;
  }
  return sqrt(softplus(logits));
}

/// The route to the experts [N, top], weighted by the scores [N, E].
Route weighted(const Var& scores, const Tensor& experts, const ExpertsSettings& s) {
  check_shape(experts.shape() == Shape{scores.size(0), s.top},
              "Experts: experts must have shape [{}, {}] for as many tokens but have {}", scores.size(0), s.top,
              experts.shape());
  loads(experts, s.experts);
  Var weights = gather(scores, 1, experts);
  if (s.normalized) weights = weights / (sum(weights, {1}, true) + 1e-20);
  return {experts, s.scale * weights, scores};
}

}  // namespace

std::vector<std::int64_t> Route::loads() const { return nn::loads(experts, scores.size(1)); }

const ExpertsSettings& checked(const ExpertsSettings& s) {
  check_value(s.experts >= 1 && s.shared >= 0 && s.by_token >= 0,
              "Experts: experts must be at least 1, and shared and by_token not negative but they are {}, {} and {}",
              s.experts, s.shared, s.by_token);
  check_value(s.by_token == 0 || !s.correction, "Experts: a choice by token has no correction");
  check_value(1 <= s.top && s.top <= s.experts, "Experts: top must be in [1, {}], the number of experts, but is {}",
              s.experts, s.top);
  return s;
}

Experts::Experts(std::int64_t channels, std::int64_t hidden, Rng& rng, const ExpertsSettings& s)
    : settings(checked(s)) {
  check_value(channels >= 1 && hidden >= 1, "Experts: channels and hidden must be at least 1 but are {} and {}",
              channels, hidden);
  router = init::uniform({s.experts, channels}, 1 / std::sqrt(static_cast<double>(channels)), rng, s.mlp.dtype);
  for (int e = 0; e < s.experts; ++e) experts.emplace_back(channels, hidden, rng, s.mlp);
  if (s.by_token > 0) table.value = random_table(s, rng);
  if (s.correction) correction = init::constant({s.experts}, 0, s.mlp.dtype);
  if (s.shared > 0) shared.emplace(channels, s.shared * hidden, rng, s.mlp);
}

Route Experts::route(const Var& x) const {
  const Var all = scores(*this, x);
  const Var preferred = correction.value().defined() ? all + correction : all;
  return weighted(all, topk(preferred.value(), settings.top).ids, settings);
}

Route Experts::route(const Var& x, const Tensor& experts) const {
  return weighted(scores(*this, x), experts.reshape({-1, experts.size(-1)}), settings);
}

Var Experts::operator()(const Var& x, const Tensor& tokens) const {
  if (!table.value.defined()) return (*this)(x, route(x));
  check_value(tokens.defined(), "Experts: a choice by token needs the tokens");
  check_shape(tokens.numel() * x.size(-1) == x.numel(), "Experts: tokens must be as many as those of x {} but are {}",
              x.shape(), tokens.shape());
  braid::detail::check_ids("Experts", tokens, 0, settings.by_token);
  return (*this)(x, route(x, index_select(Var(table.value), 0, tokens.reshape({-1})).value()));
}

Var Experts::operator()(const Var& x, const Route& route) const {
  if (RouteScope* scope = RouteScope::active()) scope->routes.push_back(route);
  const Order order(route.experts, settings.experts);
  const Var sorted = index_select(tokens_of(x), 0, order.tokens);
  std::vector<Var> outputs;
  for (std::size_t e = 0; e < experts.size(); ++e)
    if (order.begins[e] < order.begins[e + 1])
      outputs.push_back(experts[e](slice(sorted, 0, order.begins[e], order.begins[e + 1])));
  if (outputs.empty()) return x;
  const Var mixed = reshape(index_select(concat(outputs, 0), 0, order.places), {-1, settings.top, x.size(-1)});
  const Var y = reshape(sum(mixed * expand_dims(cast(route.weights, x.dtype()), -1), {1}), x.shape());
  return shared ? y + (*shared)(x) : y;
}

void Experts::rebalance(std::span<const std::int64_t> loads, double rate) {
  check_value(correction.value().defined(), "Experts: rebalance needs the setting correction");
  check_shape(std::ssize(loads) == settings.experts, "Experts: rebalance needs the loads of {} experts but has {}",
              settings.experts, loads.size());
  const std::int64_t all = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  std::vector<double> change;
  for (const std::int64_t load : loads) {
    const std::int64_t lack = all - load * settings.experts;
    change.push_back(lack > 0 ? rate : lack < 0 ? -rate : 0);
  }
  const Tensor by = Tensor::of<double>({settings.experts}, change);
  correction = (correction + by.to(correction.dtype())).value();
}

Var balance_loss(const Route& route) {
  const std::int64_t experts = route.scores.size(1);
  std::vector<double> shares;
  for (const std::int64_t count : route.loads())
    shares.push_back(static_cast<double>(experts * count) / static_cast<double>(route.experts.numel()));
  const Tensor f = Tensor::of<double>({experts}, shares).to(route.scores.dtype());
  const Var p = route.scores / sum(route.scores, {1}, true);
  return sum(mean(p, {0}) * f);
}

}  // namespace braid::nn
