#include <braid/mhc/connections/history/history_buffer.h>

namespace braid::mhc {

HistoryBuffer::HistoryBuffer(std::int64_t max_history, bool detach_history)
    : max_history_(max_history), detach_history_(detach_history) {
  check_value(max_history >= 1, "HistoryBuffer: max_history must be >= 1 but is {}", max_history);
}

void HistoryBuffer::append(const Var& x) {
  check_shape(states_.empty() || states_.back().shape() == x.shape(),
              "HistoryBuffer: x must have the shape {} of the states before it but has {}",
              states_.empty() ? x.shape() : states_.back().shape(), x.shape());
  if (size() == max_history_) states_.erase(states_.begin());
  states_.push_back(detach_history_ ? detach(x) : x);
}

}  // namespace braid::mhc
