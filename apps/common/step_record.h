#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/autograd/probe.h>

namespace braid::apps {

/// The checksum of the elements of tensors, on all threads.
std::string checksum_of(std::span<const Tensor> tensors);

/// A tensor that a training step computed: an output of an op, the cotangent of one of its inputs, or a parameter.
struct StepEvent {
  std::string op;           ///< `parameter` for the values that the step starts from
  std::int64_t number = 0;  ///< of the op, or of the parameter, from 1 in the order of execution
  bool backward = false;    ///< a cotangent
  std::size_t index = 0;    ///< of the output or input
  Shape shape;
  std::string checksum;
  std::string name;  ///< of the parameter, or of the first parameter among the inputs of the op; empty without one
};

nlohmann::ordered_json to_json(const StepEvent& event);
/// Throws FileError that begins with `what` when it is not the JSON of an event.
StepEvent step_event(const std::string& what, const nlohmann::json& json);

/// Records the checksums of everything that a step computes, as the probe of its tapes.
class StepRecord : public Probe {
 public:
  /// `names` are those of the parameters, in their order. Keeps the elements of the event with this index, too.
  explicit StepRecord(std::vector<std::string> names, std::optional<std::size_t> kept = {})
      : names_(std::move(names)), keep_(kept) {}

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override;
  void propagated(const RecordedOp& op, std::vector<Tensor>& dxs) override;

  const std::vector<StepEvent>& events() const { return events_; }
  const Tensor& kept() const { return kept_; }

 private:
  void add(const RecordedOp& op, bool backward, std::size_t index, const Tensor& x);

  struct Entry {  // of the current tape
    std::int64_t number;
    std::string name;
  };

  std::vector<std::string> names_;
  std::vector<StepEvent> events_;
  std::vector<Entry> entries_;
  std::map<ValueId, std::string> parameters_;  // of the current tape
  std::int64_t ops_ = 0;
  std::optional<std::size_t> keep_;
  Tensor kept_;
};

/// The first event in which two records of one step differ; nullopt if there is none. Earlier events are equal, so that
/// it is the op of this event that computed something else, from equal inputs.
std::optional<std::size_t> first_difference(const std::vector<StepEvent>& a, const std::vector<StepEvent>& b);

/// `op 'linear' (#37 of 112, with head.weight), output 0 [8, 128, 65]`, or `.., vjp, cotangent of input 1 [..]`.
std::string describe(const std::vector<StepEvent>& events, std::size_t index);

/// `element [3, 1, 90, 7]: 0.53125 against 0.5312501`, the first in which two tensors of one shape differ in bits.
std::string describe_element(const Tensor& a, const Tensor& b);

}  // namespace braid::apps
