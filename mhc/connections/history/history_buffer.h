#pragma once
#include <span>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::mhc {

/// The last `max_history` states of a stack of layers, oldest first, of any shape. A value: copies are cheap.
class HistoryBuffer {
 public:
  /// With `detach_history`, no gradient flows through the kept states. Throws ValueError unless max_history >= 1.
  explicit HistoryBuffer(std::int64_t max_history, bool detach_history = false)
      : max_history_(max_history), detach_history_(detach_history) {
    check_value(max_history >= 1, "HistoryBuffer: max_history must be >= 1 but is {}", max_history);
  }

  /// Drops the oldest state when full. Throws ShapeError unless x has the shape of the states before it.
  void append(const Var& x) {
    const Shape& expected = states_.empty() ? x.shape() : states_.back().shape();
    check_shape(x.shape() == expected, "HistoryBuffer: x must have the shape {} of the states before it but has {}",
                expected, x.shape());
    if (size() == max_history_) states_.erase(states_.begin());
    states_.push_back(detach_history_ ? detach(x) : x);
  }
  std::span<const Var> get() const& { return states_; }  ///< the states, oldest first
  std::span<const Var> get() && = delete;
  void clear() { states_.clear(); }  ///< drops all states

  std::int64_t size() const { return static_cast<std::int64_t>(states_.size()); }  ///< states kept now
  std::int64_t max_history() const { return max_history_; }                        ///< states kept at most
  bool detach_history() const { return detach_history_; }                          ///< whether gradients stop at them

 private:
  std::int64_t max_history_;
  bool detach_history_;
  std::vector<Var> states_;
};

/// The state between the layers of a stack with skip connections, and the states before it.
struct History {
  Var x;                  ///< the state, of any shape
  HistoryBuffer earlier;  ///< those before it, of the same shape
};

}  // namespace braid::mhc
