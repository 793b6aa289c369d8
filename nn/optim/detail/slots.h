#pragma once
#include <string>
#include <utility>
#include <vector>

#include <braid/nn/optim/detail/update.h>
#include <braid/nn/saving.h>

namespace braid::nn {

/// What an optimizer remembers of each parameter: one tensor of its shape for each kind ("first_moment", ...), zeros
/// at the start, and how many steps it has taken. By name: `step`, `first_moment.head.weight`.
class Slots {
 public:
  explicit Slots(std::vector<std::string> kinds) : kinds_(std::move(kinds)), tensors_(kinds_.size()) {}

  std::int64_t steps() const { return steps_; }

  /// Makes every tensor writable before a step. The first step decides which parameters there are; throws Error naming
  /// the optimizer when a later one brings others.
  void prepare_step(const char* optimizer, const std::vector<Update>& updates);
  /// Counts a step that is done.
  void count_step() { ++steps_; }

  /// The tensor of a kind, by the kind's position, for a parameter, by its position.
  Tensor& at(std::size_t kind, std::size_t parameter) { return tensors_[kind][parameter]; }

  /// Only `step` before the first step.
  NamedTensors state() const;

  /// Restores state() for a model with these parameters. Throws Error that lists all names that do not fit; then
  /// nothing has changed.
  void load(const char* optimizer, const std::vector<NamedParam>& params, const NamedTensors& state);

 private:
  void add(const std::string& name, const Tensor& value);

  std::vector<std::string> kinds_;
  std::vector<std::vector<Tensor>> tensors_;  // [kind][parameter]
  std::vector<std::string> names_;            // [parameter]
  std::int64_t steps_ = 0;
};

}  // namespace braid::nn
