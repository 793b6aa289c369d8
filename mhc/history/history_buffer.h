#pragma once
#include <span>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::mhc {

/// The last `max_history` states of a stack of layers, oldest first. A value: copies are cheap.
class HistoryBuffer {
 public:
  /// With `detach_history`, no gradient flows through what is kept. Throws ValueError unless max_history >= 1.
  explicit HistoryBuffer(std::int64_t max_history, bool detach_history = false);

  /// Forgets the oldest state when full. Throws ShapeError unless x has the shape of the states before it.
  void append(const Var& x);
  std::span<const Var> get() const { return states_; }
  void clear() { states_.clear(); }

  std::int64_t size() const { return static_cast<std::int64_t>(states_.size()); }
  std::int64_t max_history() const { return max_history_; }
  bool detach_history() const { return detach_history_; }

 private:
  std::int64_t max_history_;
  bool detach_history_;
  std::vector<Var> states_;
};

/// What runs through a stack with skip connections: the state, and those before it.
struct History {
  Var x;
  HistoryBuffer earlier;
};

}  // namespace braid::mhc
