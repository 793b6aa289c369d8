#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <braid/autograd/probe.h>

namespace braid {

/// Says where the time of a training step goes, op by op:
///
///     Profile profile;
///     auto step = value_and_grad(loss, &profile);
///     profile.start();
///     auto [loss, grads] = step(model, x, y);
///     optimizer.step(model, grads);
///     profile.lap("optimizer");
///     fmt::print("{}", profile.table());
///
/// What lies between two ops counts to the later one. An op under `checkpoint` counts to that. Several steps add up.
class Profile : public Probe {
 public:
  /// What the calls of one op took, or what a lap did. Bytes are those of its inputs and outputs, backward also of
  /// their cotangents, as if each were read or written once: the least an op moves. Operations are those of products.
  struct Row {
    std::string name;                      ///< of the op or the lap
    std::int64_t calls = 0;                ///< over all steps
    double forward_s = 0, backward_s = 0;  ///< seconds over all steps
    double bytes = 0, operations = 0;      ///< over all steps; see above
  };

  /// The peaks of the machine, to compare with; 0: unknown.
  struct Peak {
    double bytes_per_s = 0, operations_per_s = 0;  ///< of memory, and of products
  };

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override;
  void propagates(const RecordedOp& op, std::span<Tensor> dys) override;
  void propagated(const RecordedOp& op, std::vector<Tensor>& dxs) override;

  /// A step begins: time since the last event does not count.
  void start();
  /// The time since the last event counts to `name`, which is no op: clipping, the optimizer, ..
  void lap(const std::string& name);

  /// The slowest first.
  std::vector<Row> rows() const;
  /// For people: milliseconds a step, share of the step, and for what has bytes or operations how much of the peak is
  /// reached.
  std::string table(const Peak& peak) const;
  std::string table() const { return table({}); }
  /// For chrome://tracing or Perfetto: every op as an event, with the shapes of its inputs.
  std::string chrome_trace() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Cost {
    double bytes, operations;
    std::string shapes;
  };
  struct Event {
    std::string name;
    const char* category;  // forward, backward or step
    double begin_s, duration_s;
    Cost cost;
  };

  void add(const std::string& name, const char* category, Cost cost);

  Clock::time_point begin_ = Clock::now(), last_ = begin_;
  std::int64_t steps_ = 0;
  std::map<std::size_t, Cost> costs_;  // of the ops of this step, by index, until their vjp has run
  std::vector<Event> events_;
};

}  // namespace braid
