#include "memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace braid::platform {
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

}  // namespace

double available_bytes() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  const double pages = number_in("/proc/self/statm"), page = static_cast<double>(sysconf(_SC_PAGESIZE));
  const double taken = pages == kUnlimited ? 0 : pages * page;  // of addresses
  const double address_space =
      limit.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<double>(limit.rlim_cur) - taken;
  const double container = number_in("/sys/fs/cgroup/memory.max");
  const double swap = entry("/proc/meminfo", "SwapFree:");
  const double system = 1024 * (entry("/proc/meminfo", "MemAvailable:") + (swap == kUnlimited ? 0 : swap));
  return std::min({address_space, container, system});
}

std::int64_t peak_bytes() {
#ifdef __APPLE__
  constexpr std::int64_t kUnit = 1;
#else
  constexpr std::int64_t kUnit = 1024;
#endif
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return kUnit * usage.ru_maxrss;
}

}  // namespace braid::platform
