#include <braid/core/platform/machine.h>

#include <sched.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif
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

#ifdef __APPLE__

static std::string system_text(const char* key, const char* otherwise) {
  std::array<char, 256> text{};
  std::size_t size = text.size() - 1;
  return sysctlbyname(key, text.data(), &size, nullptr, 0) == 0 ? text.data() : otherwise;
}

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

bool has_fast_avx512_bf16() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
#else
  return false;
#endif
}

bool may_use_amx() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTiles = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (d >> 22 & 1) != 0 &&  // AMX-BF16
         syscall(SYS_arch_prctl, kRequestPermission, kTiles) == 0;
#else
  return false;
#endif
}

}  // namespace braid::platform
