#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/nn/saving.h>

namespace braid::nn {

/// Chooses some of the parameters.
using ParamRule = std::function<bool(std::string_view name, const Tensor& value)>;

/// Whether weight decay acts on a parameter.
using DecayRule = ParamRule;

/// The default rule: parameters of at least two axes, except those of an Indexer, which have no gradient. Biases, norms
/// and scales do not decay.
bool decay_matrices(std::string_view name, const Tensor& value);
/// Those of at least two axes that are also called `weight`, as in Linear and Embedding. This leaves out learned
/// positions and the maps and logits of hyper-connections, for which zero is no natural value; the gates of
/// GatedResidual are called `weight` and decay.
bool decay_weights_only(std::string_view name, const Tensor& value);
/// Every parameter, of any shape, as PyTorch's optimizers do without parameter groups, and optax without a mask.
bool decay_everything(std::string_view name, const Tensor& value);

/// The base of all optimizers, and of one of your own, which has a constructor and apply(). Its state is the number of
/// steps and, for each parameter, some tensors (`first_moment`, ...), zeros at the start: one of the parameter's shape
/// for each kind, unless state_of() says otherwise.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  double lr() const { return lr_; }  ///< the learning rate of the next step
  /// Throws ValueError unless lr is finite and at least 0.
  void set_lr(double lr);
  std::int64_t steps() const { return steps_; }  ///< steps taken so far

  /// Updates the model in place; a parameter that shares its storage gets its own first. When memory runs out, no
  /// parameter has changed and no step is counted. The gradients are `grads` times `grad_scale`, see nn::clipping().
  /// Throws ShapeError or DTypeError naming the first parameter whose gradient does not fit, Error when it has state
  /// of other parameters, and Error naming two parameters that are the same elements of one storage, since
  /// the step would give each its own; then nothing has changed.
  template <class M>
  void step(M& model, const M& grads, double grad_scale = 1) {
    std::vector<Update> updates;
    std::vector<Tensor> gradients;
    for_each_param(model, [&](const std::string& name, Var& p) { updates.push_back({name, &p.mutable_value()}); });
    for_each_param(grads, [&](const std::string&, const Var& grad) { gradients.push_back(grad.value()); });
    step(std::move(updates), gradients, grad_scale);
  }

  /// `step`, an i32 scalar, and `first_moment.head.weight` and so on; only `step` before the first step.
  NamedTensors state() const;
  /// Continues from a state() of a model with the same parameters. Throws Error listing the names that do not fit; then
  /// nothing has changed.
  void load_state(auto& model, const NamedTensors& state) { load_state(named_params(model), state); }

 protected:
  /// A parameter in one step.
  struct Update {
    std::string name;     ///< its path
    Tensor* value;        ///< the parameter
    Tensor grad = {};     ///< its gradient, of its shape, contiguous, not yet scaled by grad_scale
    bool decays = false;  ///< whether the DecayRule chooses it
    Tensor* state = {};   ///< its state tensors, in the order of state_of()
  };

  /// A tensor that is kept for a parameter.
  struct State {
    std::string kind;  ///< as in `first_moment`
    Shape shape;
  };

  /// `name` begins the messages; `kinds` are the names of a parameter's state tensors. Throws ValueError unless lr is
  /// finite and at least 0.
  Optimizer(const char* name, double lr, std::vector<std::string> kinds, DecayRule decays = decay_matrices);

  /// Throws ValueError unless `value` is finite and at least 0.
  void check_nonnegative(const char* setting, double value) const;
  /// Throws ValueError unless `value` is in [0, 1).
  void check_fraction(const char* setting, double value) const;

  /// What is kept for a parameter: the same at every call.
  virtual std::vector<State> state_of(std::string_view name, const Tensor& value) const;

  /// Computes the new values and states of one step, of which steps() have been taken before. All gradients fit their
  /// parameters. Values and states are contiguous and unshared: write them through mutable_data, or assign new tensors
  /// of the same shape and dtype. If it throws, what it wrote stays, so allocate before writing if that matters.
  virtual void apply(const std::vector<Update>& updates, double grad_scale) = 0;

 private:
  /// The state of a parameter.
  struct Slot {
    std::string parameter;           // its name, dtype and shape
    std::vector<std::string> names;  // of the tensors, as in `first_moment.head.weight`
    std::vector<Tensor> tensors;
  };

  void step(std::vector<Update> updates, const std::vector<Tensor>& grads, double grad_scale);
  void load_state(const std::vector<NamedParam>& params, const NamedTensors& state);
  void prepare_slots(const std::vector<Update>& updates);
  Slot fresh_slot(const std::string& parameter, const Tensor& value) const;

  const char* name_;
  double lr_;
  DecayRule decays_;
  std::vector<std::string> kinds_;
  std::vector<Slot> slots_;  // [parameter], empty before the first step
  std::int64_t steps_ = 0;
};

}  // namespace braid::nn
