#include <braid/nn/optim/detail/slots.h>

#include <algorithm>

namespace braid::nn {
namespace {

std::string describe(const std::string& parameter, const Tensor& t) {
  return fmt::format("{} {} {}", parameter, name(t.dtype()), t.shape());
}

bool is_fresh(const NamedTensors& state) {
  const auto step = state.find("step");
  return state.size() == 1 && step != state.end() && step->second.numel() == 1 && step->second.item() == 0;
}

}  // namespace

void Slots::add(const std::string& name, const Tensor& value) {
  names_.push_back(name);
  const BypassCache fresh;
  for (auto& kind : tensors_) kind.push_back(zeros(value.shape(), value.dtype()));
}

void Slots::prepare_step(const char* optimizer, const std::vector<Update>& updates) {
  if (names_.empty()) {
    Slots fresh(kinds_);  // all of them or, when memory runs out, none
    for (const Update& u : updates) fresh.add(u.name, *u.value);
    *this = std::move(fresh);
  }
  check<Error>(updates.size() == names_.size(), "{}: has the state of {} parameters but the model has {}", optimizer,
               names_.size(), updates.size());
  for (auto& kind : tensors_)
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const std::string mine = describe(names_[i], kind[i]), models = describe(updates[i].name, *updates[i].value);
      check<Error>(mine == models, "{}: has the state of {} but the model has {}", optimizer, mine, models);
    }
  for (auto& kind : tensors_) std::ranges::for_each(kind, make_writable);
}

NamedTensors Slots::state() const {
  NamedTensors state{{"step", Tensor::of<std::int32_t>({}, {static_cast<std::int32_t>(steps_)})}};
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    for (std::size_t i = 0; i < names_.size(); ++i) state.emplace(kinds_[k] + "." + names_[i], tensors_[k][i]);
  return state;
}

void Slots::load(const char* optimizer, const std::vector<NamedParam>& params, const NamedTensors& state) {
  Slots loaded(kinds_);
  if (!is_fresh(state))
    for (const auto& [name, param] : params) loaded.add(name, param->value());
  Tensor step = Tensor::of<std::int32_t>({}, {0});
  std::vector<std::pair<std::string, Tensor*>> targets{{"step", &step}};
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    for (std::size_t i = 0; i < loaded.names_.size(); ++i)
      targets.emplace_back(kinds_[k] + "." + loaded.names_[i], &loaded.at(k, i));
  assign_by_name(std::string(optimizer) + "::load_state", targets, state);
  loaded.steps_ = static_cast<std::int64_t>(step.item());
  *this = std::move(loaded);
}

}  // namespace braid::nn
