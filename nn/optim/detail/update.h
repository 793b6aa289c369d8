#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {

/// Whether weight decay acts on a parameter.
using DecayRule = std::function<bool(std::string_view name, const Tensor& value)>;

/// The default rule: matrices called `weight`, those of Linear and Embedding. Norms, biases, positions, and the
/// parameters of connections (their scales, biases and logits) stay free, since zero is no natural value for them.
bool decay_weights_only(std::string_view name, const Tensor& value);
/// Every parameter, as optimizers without groups do.
bool decay_everything(std::string_view name, const Tensor& value);

/// A parameter of the model and its gradient.
struct Update {
  std::string name;
  Tensor* value;
  Tensor grad;
};

/// Throws ShapeError or DTypeError naming the optimizer and the first parameter whose gradient does not fit.
void check_updates(const char* optimizer, const std::vector<Update>& updates, std::size_t num_grads);

/// The parameters of `model` beside their gradients in `grads`, a module of the same structure.
template <Parametric M>
std::vector<Update> match_updates(const char* optimizer, M& model, const M& grads) {
  std::vector<Update> updates;
  for_each_param(model, [&](const std::string& name, Var& p) { updates.push_back({name, &p.mutable_value(), {}}); });
  std::size_t i = 0;
  for_each_param(grads, [&](const std::string&, const Var& grad) {
    if (i < updates.size()) updates[i].grad = grad.value().contiguous();
    ++i;
  });
  check_updates(optimizer, updates, i);
  return updates;
}

/// The blocks that one pass over all parameters takes.
std::vector<TensorBlock> blocks_of(const std::vector<Update>& updates);

}  // namespace braid::nn
