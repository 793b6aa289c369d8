#pragma once
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include <braid/autograd/var.h>
#include <braid/core/detail/indexing.h>
#include <braid/core/scope.h>

namespace braid::detail {

/// An input of a recorded op, or a value on the tape.
struct Input {
  std::optional<ValueId> id;  // nullopt: a constant
  Shape shape;
  DType dtype;
};

/// What a tape of higher order keeps of an op, to run its rule.
struct Retained {
  Rule rule;  // empty: the op has none
  std::vector<Tensor> inputs, outputs;
};

struct Node {
  const char* op;
  std::pmr::vector<Input> inputs;
  ValueId first_output;
  std::size_t outputs;  // their number
  Vjp vjp;              // empty: a leaf
  std::optional<Deferral> deferral = {};
  std::shared_ptr<const Retained> retained = {};  // null: on a tape of first order
  View view = {};  // of a view of its only input: where its cotangent is added, instead of what the vjp returns
};

enum class Stage { recording, running_backward, done, handed_over };

struct TapeState {
  std::pmr::monotonic_buffer_resource memory;  // of the nodes' inputs
  std::vector<Node> nodes;
  std::vector<Input> values;     // by ValueId
  std::vector<Tensor> grads;     // the same, once backward has run
  std::vector<ValueId> watched;  // ascending
  Needs needs;                   // of the op whose vjp runs
  Stage stage = Stage::recording;
  bool higher_order = false;
  Probe* probe = nullptr;

  /// Makes a new tape one of higher order, and this thread's newest.
  static void start_higher_order(const std::shared_ptr<TapeState>& self);

  static const std::shared_ptr<TapeState>& of(const Var& v) { return v.tape_; }
  static ValueId id(const Var& v) { return v.id_; }
  /// Whether both are the same variable of a tape.
  static bool same(const Var& a, const Var& b) { return a.tape_ && a.tape_ == b.tape_ && a.id_ == b.id_; }
  /// The value `id` of a tape; a constant without one.
  static Var variable(const std::shared_ptr<TapeState>& self, Tensor value, std::optional<ValueId> id);

  ValueId num_values() const { return static_cast<ValueId>(values.size()); }

  /// Adds a node, and makes its outputs, constants until then, variables of the tape.
  static void push(const std::shared_ptr<TapeState>& self, Node&& node, Rule&& rule, std::span<const Var> inputs,
                   std::span<Var> outputs);
  /// A new variable without inputs.
  static Var leaf(const std::shared_ptr<TapeState>& self, Var value);

  /// A watched variable, by its position, and the first node that reads it: when that is done, its gradient is final.
  struct FirstReader {
    std::size_t node, watched;
    auto operator<=>(const FirstReader&) const = default;
  };

  /// In the order of the nodes; the first is a placeholder for none.
  std::vector<FirstReader> first_readers() const;
  /// Runs the newest node's vjp and forgets the node.
  void step_back();
};

/// Records `view(x)`. The cotangents of all views of x add in place to one gradient: T positions of a loop cost O(T).
Var record_view(const char* op, const Var& x, View view);

/// `sum += term`, in place only when the sum is not shared: an op may return one cotangent twice.
void accumulate(Tensor& sum, Tensor term);

/// `view(sum) += term` for the cotangent of a view of `x`, in place.
void accumulate(Tensor& sum, const Input& x, const View& view, const Tensor& term);

/// Throws Error, ShapeError or DTypeError unless `dxs`, made by the node's vjp or rule, fit its inputs; checks them as
/// check_finite does.
void check_cotangents(const Node& node, const char* made_by, std::span<const Tensor> dxs);

/// In a CheckFinite scope, throws NonFiniteError unless all that an op computed is finite.
void check_finite(const char* op, const char* made_by, std::span<const Tensor> results, std::span<const Input> inputs);

/// Runs the vjp of a node.
std::vector<Tensor> run_vjp(const Node& node, std::span<Tensor> dys, const Needs& needs);
/// Alive while this thread runs one: then ops on constants are parts of it, and CheckFinite checks it as a whole.
class WithinVjp : public Scope<WithinVjp> {};

/// The tapes of higher order that this thread started, oldest first; some may be gone.
std::vector<std::weak_ptr<TapeState>>& tapes_of_higher_order();

}  // namespace braid::detail
