#include <braid/core/platform/cpu.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace braid::platform {

#ifdef __x86_64__
bool has_avx512_bf16() { return __builtin_cpu_supports("avx512bf16"); }
bool is_intel() { return __builtin_cpu_is("intel"); }
#else
bool has_avx512_bf16() { return false; }
bool is_intel() { return false; }
#endif

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
