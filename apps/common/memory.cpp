#include "memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include <braid/core/error.h>

namespace braid::apps {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// The number after `key` in a file of `key number` lines.
double entry(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string word; in >> word;)
    if (double value = 0; word == key && in >> value) return value;
  return kUnlimited;
}

/// The number in a file that has one number, or a word such as `max`.
double number_in(const char* file) {
  double value = 0;
  return std::ifstream(file) >> value ? value : kUnlimited;
}

/// The bytes that the system, the container and the limits of the process leave free.
double available_bytes() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  const double address_space = limit.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<double>(limit.rlim_cur);
  const double container = number_in("/sys/fs/cgroup/memory.max");
  const double swap = entry("/proc/meminfo", "SwapFree:");
  const double system = 1024 * (entry("/proc/meminfo", "MemAvailable:") + (swap == kUnlimited ? 0 : swap));
  return std::min({address_space, container, system});
}

double least_bytes(const TrainingSizes& s) {
  const auto c = static_cast<double>(s.channels), n = static_cast<double>(s.streams);
  const auto layers = static_cast<double>(s.layers), vocab = static_cast<double>(s.vocab);
  const double tokens = static_cast<double>(s.batch) * static_cast<double>(s.context);
  const double maps = n > 1 ? 2 * n * c * (n * n + 2 * n) : 0;  // of the two connections of a layer
  const double parameters = 2 * vocab * c + static_cast<double>(s.context) * c + layers * (12 * c * c + maps);
  const double kept = tokens * (layers * c * (16 + 2 * n) + vocab);
  return s.bytes * (4 * parameters + kept);
}

}  // namespace

void check_memory(const std::string& what, double bytes) {
  const double available = available_bytes();
  check_value(bytes <= available, "{} take at least {:.3g} GB but {:.3g} GB of memory are free", what, bytes / 1e9,
              available / 1e9);
}

void check_memory(const TrainingSizes& sizes) {
  check_memory("a model and batches of these sizes", least_bytes(sizes));
}

}  // namespace braid::apps
