#include <braid/core/platform/machine.h>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

#include <array>
#include <fstream>

namespace braid::platform {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string system_name() {
  utsname system{};
  uname(&system);
  return std::string(system.sysname) + " " + system.release + " " + system.machine;
}

#ifdef __APPLE__

namespace {

std::string system_text(const char* key, const char* otherwise) {
  std::array<char, 256> text{};
  std::size_t size = text.size() - 1;
  return sysctlbyname(key, text.data(), &size, nullptr, 0) == 0 ? text.data() : otherwise;
}

}  // namespace

std::string processor_name() { return system_text("machdep.cpu.brand_string", "unknown"); }
std::string usable_processors() { return ""; }
std::string boot_id() { return system_text("kern.bootsessionuuid", ""); }

#else

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::string text;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) text += CPU_ISSET(i, &set) ? '1' : '0';
  return text;
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

#endif

}  // namespace braid::platform
