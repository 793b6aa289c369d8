#include "progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../platform/standard_streams.h"

namespace braid::apps {
namespace {

constexpr int kBarWidth = 24;
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{10};

}  // namespace

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string human_duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
}

Progress::Progress(std::string unit, std::int64_t total, std::int64_t done, bool may_draw)
    : unit_(std::move(unit)),
      total_(total),
      first_(done),
      done_(done),
      terminal_(may_draw && platform::stdout_is_terminal()) {}

double Progress::seconds_left() const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  return done_ > first_ ? elapsed / static_cast<double>(done_ - first_) * static_cast<double>(total_ - done_) : 0;
}

std::string Progress::line(const std::string& status, double seconds_left) const {
  const auto filled = static_cast<int>(kBarWidth * done_ / std::max<std::int64_t>(total_, 1));
  const std::string bar =
      terminal_ ? fmt::format(" [{:-<{}}]", std::string(static_cast<std::size_t>(filled), '#'), kBarWidth) : "";
  return fmt::format("{} {}/{}{} {} | {} left", unit_, done_, total_, bar, status, human_duration(seconds_left));
}

void Progress::update(std::int64_t done, const std::string& status, std::optional<double> seconds_left) {
  done_ = done;
  const auto now = Clock::now();
  const bool last = done_ == total_;
  if (!last && now - shown_ < (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine))) return;
  shown_ = now;
  drawn_ = terminal_;
  const std::string text = line(status, seconds_left ? *seconds_left : this->seconds_left());
  say("{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
}

void Progress::message(const std::string& text) { say("{}{}\n", drawn_ ? "\r\x1b[K" : "", text); }

void Progress::finish() {
  if (drawn_) say("\n");
  drawn_ = false;
}

}  // namespace braid::apps
