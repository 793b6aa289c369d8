#pragma once
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <braid/core/scope.h>
#include <braid/nn/mlp.h>
#include <braid/nn/saving.h>

namespace braid::nn {

/// How a router turns its logits into the scores of experts.
enum class Routing {
  softmax,        ///< over the experts, as Mixtral and Qwen3
  sigmoid,        ///< each on its own, as DeepSeek-V3
  sqrt_softplus,  ///< each on its own, as DeepSeek-V4
};

/// Settings of Experts.
struct ExpertsSettings {
  int experts = 8;                     ///< E
  int top = 2;                         ///< experts of each token
  int shared = 0;                      ///< MLPs beside them that every token passes
  Routing routing = Routing::softmax;  ///< the scores
  bool normalized = true;              ///< whether the weights of a token add up to `scale`
  double scale = 1;                    ///< factor of the weights
  bool correction = false;             ///< whether a vector, trained by rebalance(), takes part in the choice
  std::int64_t by_token = 0;           ///< if positive, the number of token ids, whose experts a table names
  MLPSettings mlp = {.activation = Activation::swiglu, .bias = false};  ///< of each expert; its dtype is the router's

  bool operator==(const ExpertsSettings&) const = default;  ///< all equal
};

/// Returns the settings. Throws ValueError unless experts is at least 1, shared and by_token are not negative, top is
/// in [1, experts], and there is no correction of a table.
const ExpertsSettings& checked(const ExpertsSettings& settings);

/// The experts of N tokens.
struct Route {
  Tensor experts;  ///< [N, top] i32
  Var weights;     ///< [N, top]
  Var scores;      ///< [N, E]

  std::vector<std::int64_t> loads() const;  ///< how many choices each expert got. [E]
};

/// Notes the routes that tokens take on this thread while it lives, in order: for balance_loss() in a loss, and for
/// rebalance() behind a step. A checkpoint() computes its routes twice.
struct RouteScope : CollectingScope<RouteScope> {
  std::vector<Route> routes;  ///< so far
};

/// A mixture of experts, x [..., C] -> [..., C]: E MLPs with `hidden` channels inside, of which each token passes those
/// with the largest scores, `y = sum_e w_e mlp_e(x)`. Tokens are sorted by expert, so that each expert is one product;
/// none is dropped, and an expert without tokens gets zero gradients. arXiv:1701.06538, arXiv:2401.04088.
struct Experts {
  ExpertsSettings settings;
  Var router;                 ///< [E, C]
  std::vector<MLP> experts;   ///< E of them
  Buffer table;               ///< [by_token, top] i32, at the start `top` in a row; undefined without the setting
  Var correction;             ///< [E], zeros at the start; undefined without the setting
  std::optional<MLP> shared;  ///< with `shared * hidden` channels

  /// Throws ValueError unless channels, hidden and experts are at least 1 and top is in [1, experts].
  Experts(std::int64_t channels, std::int64_t hidden, Rng& rng, const ExpertsSettings& settings = {});

  /// The experts that the router chooses for x [..., C].
  Route route(const Var& x) const;
  /// Those that are given, [..., top] i32, as a table of token ids does, with the router's weights. Throws ShapeError,
  /// DTypeError or ValueError unless there are `top` in [0, E) for each token.
  Route route(const Var& x, const Tensor& experts) const;

  /// Routes by `tokens` [...] i32 where a table does. Throws ValueError unless there are some, all in it,
  /// ShapeError or DTypeError unless they are i32, one for each token of x.
  Var operator()(const Var& x, const Tensor& tokens = {}) const;
  Var operator()(const Var& x, const Route& route) const;

  /// Raises the correction of experts whose loads, those of a route or sums of several, are below the mean by `rate`,
  /// and lowers that of the others (arXiv:2408.15664). Call it after a step; it takes no gradient. Throws ValueError
  /// without a correction, ShapeError unless there are E loads.
  void rebalance(std::span<const std::int64_t> loads, double rate);

  void params(auto&& visit) {
    visit("router", router);
    visit("experts", experts);
    if (table.value.defined()) visit("table", table);
    if (correction.value().defined()) visit("correction", correction);
    if (shared) visit("shared", *shared);
  }
};

/// What a block has behind its attention: an MLP, or experts.
struct FeedForward {
  std::variant<MLP, Experts> layer;  ///< either

  FeedForward(MLP mlp) : layer(std::move(mlp)) {}  ///< an MLP
  FeedForward(Experts experts) : layer(std::move(experts)) {}

  /// x [..., C] -> [..., C]; `tokens` [...] i32, the ids of x, are for experts that a table names.
  Var operator()(const Var& x, const Tensor& tokens = {}) const {
    const auto* experts = std::get_if<Experts>(&layer);
    return experts != nullptr ? (*experts)(x, tokens) : std::get<MLP>(layer)(x);
  }
  void params(auto&& visit) {
    std::visit([&](auto& chosen) { visit("", chosen); }, layer);
  }
};

/// The parameters of a module that a token does not pass: those of the experts that its routers do not choose.
template <class M>
std::int64_t num_idle_params(const M& module) {
  std::int64_t idle = 0;
  const auto count = [&](const std::string&, const Experts& e) {
    idle += (e.settings.experts - e.settings.top) * num_params(e.experts.front());
  };
  braid::detail::visit_parts<Experts>(const_cast<M&>(module), count, "");
  return idle;
}

/// `E sum_e f_e p_e` with the share f_e of the tokens' choices and the mean share p_e of the scores: 1 if all experts
/// get the same. A scalar: added to the loss, times .01 or so, it balances them. arXiv:2101.03961.
Var balance_loss(const Route& route);

}  // namespace braid::nn
