#pragma once
namespace braid {

/// While one is alive, the fused ops that this thread calls run their composed forms: the same function built from
/// other ops, without a kernel or a hand-written vjp of its own. Slower; values and gradients agree to rounding.
///
///     const Composed composed;
///     auto [loss, grads] = step(model, tokens, targets);
///
/// Scopes nest. checkpoint() recomputes its function with the forms that the forward pass used.
class Composed {
 public:
  /// The fused ops that a scope affects.
  enum class Ops {
    all,          ///< of autograd and of hyper-connections
    with_rule,    ///< those of them that have a rule (see record()): a HigherOrder scope does not affect them
    connections,  ///< of hyper-connections alone, composed of autograd's fused ops: a baseline for benchmarks
  };
  /// For these ops.
  explicit Composed(Ops ops = Ops::all) : before_(current()) {
    (ops == Ops::connections ? current().connections : current().all) = true;
  }
  ~Composed() { current() = before_; }
  Composed(const Composed&) = delete;
  Composed& operator=(const Composed&) = delete;

  /// Whether such ops run their composed forms on this thread, as those without a rule also do in HigherOrder scopes.
  static bool active(Ops ops = Ops::all) {
    const auto& [all, connections, higher_order] = current();
    return all || (ops == Ops::connections && connections) || (ops != Ops::with_rule && higher_order);
  }

  /// The scopes that are alive on this thread, to be entered again elsewhere.
  struct State {
    bool all = false, connections = false;  ///< whether a scope of these ops is alive
    bool higher_order = false;              ///< whether one of HigherOrder is: fused ops without a rule are composed
  };
  static State state() { return current(); }  ///< the scopes of this thread
  explicit Composed(State state) : before_(current()) { current() = state; }

 private:
  static State& current() {
    thread_local State state;
    return state;
  }

  State before_;
};

}  // namespace braid
