#include <braid/nn/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {
namespace {

std::string describe(const std::string& parameter, const Tensor& t) {
  return fmt::format("{} {} {}", parameter, name(t.dtype()), t.shape());
}

bool is_fresh(const NamedTensors& state) {
  const auto step = state.find("step");
  return state.size() == 1 && step != state.end() && step->second.numel() == 1 && step->second.item() == 0;
}

void check_untied(const char* optimizer, const auto& updates) {
  std::map<const std::byte*, std::string_view> shared;  // by the first element
  for (const auto& u : updates) {
    if (u.value->numel() == 0 || u.value->unshared()) continue;
    const auto [first, fresh] = shared.emplace(std::as_const(*u.value).bytes(), u.name);
    check<Error>(fresh,
                 "{}: {} and {} are the same elements, and a step would untie them: use one field in both places, as "
                 "nn::Transformer does with a tied head, or start from equal values with value().clone()",
                 optimizer, first->second, u.name);
  }
}

void check_gradients(const char* optimizer, const auto& updates, std::size_t grads) {
  check_shape(grads == updates.size(), "{}: grads must have the model's {} parameters but have {}", optimizer,
              updates.size(), grads);
  for (const auto& u : updates) {
    check_shape(u.grad.defined() && u.grad.shape() == u.value->shape(),
                "{}: the gradient of {} must have shape {} but has {}", optimizer, u.name, u.value->shape(),
                u.grad.shape());
    check_dtype(u.grad.dtype() == u.value->dtype(), "{}: the gradient of {} must be {} but is {}", optimizer, u.name,
                name(u.value->dtype()), name(u.grad.dtype()));
  }
}

}  // namespace

bool decay_matrices(std::string_view name, const Tensor& value) {
  return value.rank() >= 2 && name.find("indexer.") == name.npos;  // it gets no gradient: decay alone would change it
}

bool decay_weights_only(std::string_view name, const Tensor& value) {
  return decay_matrices(name, value) && (name == "weight" || name.ends_with(".weight"));
}

bool decay_everything(std::string_view, const Tensor&) { return true; }

Optimizer::Optimizer(const char* name, double lr, std::vector<std::string> kinds, DecayRule decays)
    : name_(name), lr_(lr), decays_(std::move(decays)), kinds_(std::move(kinds)) {
  check_nonnegative("lr", lr);
}

void Optimizer::check_nonnegative(const char* setting, double value) const {
  check_value(std::isfinite(value) && value >= 0, "{}: {} must be finite and at least 0 but is {}", name_, setting,
              value);
}

void Optimizer::check_fraction(const char* setting, double value) const {
  check_value(0 <= value && value < 1, "{}: {} must be in [0, 1) but is {}", name_, setting, value);
}

void Optimizer::set_lr(double lr) {
  check_nonnegative("lr", lr);
  lr_ = lr;
}

void Optimizer::step(std::vector<Update> updates, const std::vector<Tensor>& grads, double grad_scale) {
  check_untied(name_, updates);
  for (std::size_t i = 0; i < std::min(updates.size(), grads.size()); ++i) updates[i].grad = grads[i].contiguous();
  check_gradients(name_, updates, grads.size());
  prepare_slots(updates);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    make_writable(*updates[i].value);
    updates[i].decays = decays_(updates[i].name, *updates[i].value);
    updates[i].state = slots_[i].tensors.data();
  }
  apply(updates, grad_scale);
  ++steps_;
}

std::vector<Optimizer::State> Optimizer::state_of(std::string_view, const Tensor& value) const {
  std::vector<State> state;
  for (const std::string& kind : kinds_) state.push_back({kind, value.shape()});
  return state;
}

Optimizer::Slot Optimizer::fresh_slot(const std::string& parameter, const Tensor& value) const {
  const BypassCache fresh_memory;
  Slot slot{describe(parameter, value), {}, {}};
  for (const auto& [kind, shape] : state_of(parameter, value)) {
    slot.names.push_back(kind + "." + parameter);
    slot.tensors.push_back(zeros(shape, value.dtype()));
  }
  return slot;
}

void Optimizer::prepare_slots(const std::vector<Update>& updates) {
  if (slots_.empty()) {
    std::vector<Slot> fresh;  // all of them or, when memory runs out, none
    for (const Update& u : updates) fresh.push_back(fresh_slot(u.name, *u.value));
    slots_ = std::move(fresh);
  }
  check<Error>(updates.size() == slots_.size(), "{}: has the state of {} parameters but the model has {}", name_,
               slots_.size(), updates.size());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const std::string &mine = slots_[i].parameter, models = describe(updates[i].name, *updates[i].value);
    check<Error>(slots_[i].tensors.empty() || mine == models, "{}: has the state of {} but the model has {}", name_,
                 mine, models);
  }
  for (Slot& slot : slots_) std::ranges::for_each(slot.tensors, make_writable);
}

NamedTensors Optimizer::state() const {
  NamedTensors state{{"step", Tensor::of<std::int32_t>({}, {static_cast<std::int32_t>(steps_)})}};
  for (const Slot& slot : slots_)
    for (std::size_t k = 0; k < slot.names.size(); ++k) state.emplace(slot.names[k], slot.tensors[k]);
  return state;
}

void Optimizer::load_state(const std::vector<NamedParam>& params, const NamedTensors& state) {
  std::vector<Slot> slots;
  if (!is_fresh(state))
    for (const auto& [name, param] : params) slots.push_back(fresh_slot(name, param->value()));
  Tensor step = Tensor::of<std::int32_t>({}, {0});
  std::vector<std::pair<std::string, Tensor*>> targets{{"step", &step}};
  for (Slot& slot : slots)
    for (std::size_t k = 0; k < slot.names.size(); ++k) targets.emplace_back(slot.names[k], &slot.tensors[k]);
  assign_by_name(std::string(name_) + "::load_state", targets, state);
  steps_ = static_cast<std::int64_t>(step.item());
  slots_ = std::move(slots);
}

}  // namespace braid::nn
