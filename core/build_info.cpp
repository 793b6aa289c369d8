#include <braid/core/build_info.h>

#include <fmt/format.h>
#include <hwy/highway.h>

#include <braid/core/instruction_set.h>

#ifdef BRAID_HAS_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace braid {
namespace {

std::string compiler() {
#ifdef __clang__
  const std::string text = __VERSION__;  // begins with the name
#else
  const std::string text = "GCC " __VERSION__;
#endif
#ifdef _LIBCPP_VERSION
  return fmt::format("{}, libc++ {}", text, _LIBCPP_VERSION);
#else
  return fmt::format("{}, libstdc++ {}", text, _GLIBCXX_RELEASE);
#endif
}

std::string onednn() {
#ifdef BRAID_HAS_ONEDNN
  const dnnl_version_t& v = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{} on {}", v.major, v.minor, v.patch,
                     v.cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
                     : v.cpu_runtime == DNNL_RUNTIME_TBB ? "TBB"
                                                         : "other threads");
#else
  return "no oneDNN";
#endif
}

}  // namespace

std::string_view version() { return BRAID_VERSION; }

std::string build_info() {
  return fmt::format(
      "braid {}, {}\ncompiler: {}\nlibraries: fmt {}.{}.{}, Highway {}.{}.{}, {}\ninstruction set: {} ({}), best {}",
      version(), *BRAID_BUILD_TYPE != '\0' ? BRAID_BUILD_TYPE : "no build type", compiler(), FMT_VERSION / 10000,
      FMT_VERSION / 100 % 100, FMT_VERSION % 100, HWY_MAJOR, HWY_MINOR, HWY_PATCH, onednn(), name(instruction_set()),
      kernel_target(), name(instruction_sets().back()));
}

}  // namespace braid
