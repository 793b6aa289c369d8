#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <braid/autograd/probe.h>

namespace braid {

/// Measures the time of a training step, op by op:
///
///     Profile profile;
///     auto step = value_and_grad(loss, &profile);
///     profile.start();
///     auto [loss, grads] = step(model, x, y);
///     optimizer.step(model, grads);
///     profile.lap("optimizer");
///     fmt::print("{}", profile.table());
///
/// Time between two ops counts to the later one, and an op inside `checkpoint` to checkpoint. Several steps add up.
class Profile : public Probe {
 public:
  /// The cost of all calls of one op, or of a lap. Bytes count its inputs and outputs, backward also their cotangents,
  /// each once: a lower bound of its memory traffic. Operations are those of products.
  struct Row {
    std::string name;                      ///< the op or the lap
    std::int64_t calls = 0;                ///< over all steps
    double forward_s = 0, backward_s = 0;  ///< seconds over all steps
    double bytes = 0, operations = 0;      ///< over all steps; see above
  };

  /// The peaks of the machine, to compare with; 0: unknown.
  struct Peak {
    double bytes_per_s = 0, operations_per_s = 0;  ///< memory bandwidth, rate of products
  };

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override;
  void propagates(const RecordedOp& op, std::span<Tensor> dys) override;
  void propagated(const RecordedOp& op, std::vector<Tensor>& dxs) override;
  bool sees_cotangents() const override { return false; }

  /// A step begins: time since the last event does not count.
  void start();
  /// Counts the time since the last event to `name`, work outside ops: clipping, the optimizer, ..
  void lap(const std::string& name);

  /// The slowest first.
  std::vector<Row> rows() const;
  /// One for each op, by its index on the tape, which is that of the same op in other steps.
  std::map<std::size_t, Row> ops() const;
  /// A readable table: milliseconds per step, share of the step, and the fraction of the peak rates.
  std::string table(const Peak& peak) const;
  std::string table() const { return table({}); }
  /// JSON for chrome://tracing or Perfetto: each op as an event, with the shapes of its inputs.
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
    std::size_t index;  // of the op

    void add_to(Row& row) const;
  };

  void add(const std::string& name, const char* category, Cost cost, std::size_t index = 0);

  Clock::time_point begin_ = Clock::now(), last_ = begin_;
  std::int64_t steps_ = 0;
  std::map<std::size_t, Cost> costs_;  // of the ops of this step, by index, until their vjp has run
  std::vector<Event> events_;
};

}  // namespace braid
