#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <braid/core/error.h>

namespace braid::apps {

/// Writes to stdout and flushes. A failure does not stop the program; run_main reports it at the end.
void say(const std::string& text);

template <class... Args>
  requires(sizeof...(Args) > 0)
void say(fmt::format_string<Args...> text, const Args&... args) {
  say(formatted(text, args...));
}

/// Shows the progress of long work: a line that is redrawn on a terminal, or a plain line now and then.
class Progress {
 public:
  /// `done` of `total` steps are done already (a resumed run). `may_draw` must be false under mpirun, which gives ranks
  /// a terminal even if its own output goes to a file.
  Progress(std::string unit, std::int64_t total, std::int64_t done = 0, bool may_draw = true);

  /// Call after each step; `status` follows the bar, e.g. "loss 2.31". Without `seconds_left`, the time left is
  /// estimated from the pace so far.
  void update(std::int64_t done, const std::string& status, std::optional<double> seconds_left = {});
  /// Prints a line above the bar.
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

}  // namespace braid::apps
