#pragma once
#include <span>
#include <string_view>

#include <braid/mhc/connections/history/constraint.h>
#include <braid/mhc/connections/history/history_buffer.h>

namespace braid::mhc {

/// How the states are weighted.
enum class SkipMode {
  residual,  ///< y = x + last state; no parameters
  hc,        ///< weights are the parameters themselves, unconstrained
  mhc,       ///< weights satisfy a constraint
};

/// How a constraint is kept in mode mhc.
enum class SkipProjection {
  forward,    ///< parameters are logits, the forward pass maps them onto the set
  post_step,  ///< parameters are weights, which project() brings back onto the set after each optimizer step
  none,       ///< parameters are weights, and nothing keeps them there
};

/// The initial parameters, as logits or as the softmax of these logits.
enum class SkipInit {
  identity,  ///< all weight on the current state: logits 0 for it, -10 for the others
  uniform,   ///< equal weights: logits 0
  zeros,     ///< parameters 0, whether logits or weights
};

/// The mode with this name: residual, hc or mhc. Throws ValueError listing these.
SkipMode skip_mode(std::string_view name);
/// The projection with this name: forward, post_step or none. Throws ValueError listing these.
SkipProjection skip_projection(std::string_view name);
/// The initialization with this name: identity, uniform or zeros. Throws ValueError listing these.
SkipInit skip_init(std::string_view name);

/// Settings of MHCSkip.
struct MHCSkipSettings {
  SkipMode mode = SkipMode::mhc;
  Constraint constraint = simplex_constraint();
  SkipInit init = SkipInit::identity;
  SkipProjection projection = SkipProjection::forward;
  std::int64_t max_history = 4;  ///< the largest number of states mixed
  bool detach_history = false;   ///< no gradient flows through earlier states (as a connection)
  DType dtype = DType::f32;
};

/// A skip connection over the history of a stack of layers: `y = x + sum_k alpha_k history_k`, where x = f(x_l) is the
/// layer's output and the history ends with the current state x_l. x and all states have one shape, any.
///
/// At most max_history states are mixed; fewer states take the last parameters, more leave the oldest out, none: y = x.
/// With post_step, fewer states take the projection of the last weights, their gradient passed straight through.
/// In spirit of DenseNet-like aggregation and mHC's constraint (arXiv:2512.24880), along depth instead of across
/// streams; published as a package, not a paper. No decay belongs on mixing_logits: decayed logits drift to uniform.
struct MHCSkip {
  using Stream = History;

  Var mixing_logits;  ///< [max_history], or [max_history, max_history] for a matrix constraint; undefined in mode
                      // residual
  MHCSkipSettings settings;

  /// Throws ValueError unless max_history >= 1.
  explicit MHCSkip(const MHCSkipSettings& settings = {});

  /// Throws ShapeError unless all states have the shape of x.
  Var operator()(const Var& x, std::span<const Var> history) const;
  Var operator()(const Var& x, const HistoryBuffer& history) const { return (*this)(x, history.get()); }

  /// The weights [k] of the last k states, oldest first. Throws ValueError unless k is in [1, max_history].
  Var weights(std::int64_t k) const;

  /// As the connection between sublayers: the state joins the history, and `layer` acts on it.
  History operator()(History state, auto&& layer) const {
    state.earlier.append(state.x);
    state.x = (*this)(layer(state.x), state.earlier);
    return state;
  }

  /// The embedding, of any shape, without a history.
  History open(const Var& embedding) const {
    return {embedding, HistoryBuffer(settings.max_history, settings.detach_history)};
  }
  Var close(const History& state) const { return state.x; }  ///< its last state

  /// Brings the parameters back onto the constraint's set if the projection policy is post_step. Call after each
  /// optimizer step, or mhc::project(model) for all of them.
  void project();

  void params(auto&& visit) {
    if (settings.mode != SkipMode::residual) visit("mixing_logits", mixing_logits);
  }
};

}  // namespace braid::mhc
