#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace braid::examples {

/// Writes to stdout at once. What cannot be written is lost and work goes on; run_main tells it at the end.
void say(const std::string& text);

template <class... Args>
  requires(sizeof...(Args) > 0)
void say(fmt::format_string<Args...> text, Args&&... args) {
  say(fmt::format(text, std::forward<Args>(args)...));
}

/// Shows how far long work is: one line that is redrawn on a terminal, a plain line now and then elsewhere.
class Progress {
 public:
  /// `done` of `total` steps are done already (a resumed run). `may_draw`: unless the terminal is one that mpirun makes
  /// up, whatever its own output goes to.
  Progress(std::string unit, std::int64_t total, std::int64_t done = 0, bool may_draw = true);

  /// Call after each step; `status` follows the bar, e.g. "loss 2.31". Without `seconds_left`, what is left goes at the
  /// pace so far.
  void update(std::int64_t done, const std::string& status, std::optional<double> seconds_left = {});
  /// Prints a line of its own without disturbing the bar.
  void message(const std::string& line);
  /// Ends the redrawn line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::string line(const std::string& status, double seconds_left) const;
  double seconds_left() const;

  std::string unit_;
  std::int64_t total_, first_, done_;
  bool terminal_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), shown_{};
};

/// `3m05s`, `42s`, `1h02m`.
std::string human_duration(double seconds);

}  // namespace braid::examples
