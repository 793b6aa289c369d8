#include <braid/core/instruction_set.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <braid/core/error.h>
#include <braid/core/platform/machine.h>
#include <braid/core/platform/process.h>

namespace braid {
namespace {

constexpr std::array<std::string_view, 5> kNames{"baseline", "avx2", "avx512", "amx", "neon"};

/// Highway's targets for a set on this processor, as bits; a better one is a lower bit. Highway is asked once, because
/// that makes it forget the choice, and takes microseconds under a hypervisor.
std::int64_t targets_of([[maybe_unused]] InstructionSet set) {
  static const std::int64_t targets = hwy::SupportedTargets();
#if HWY_ARCH_X86
  if (set == InstructionSet::baseline) return targets & -(HWY_SSSE3 << 1);
  if (set == InstructionSet::avx2) return targets & -HWY_AVX2;
#endif
  return targets;
}

/// The set of this name, now that of kernels. An error begins with `what`.
InstructionSet begin(std::string_view what, std::string_view text) {
  std::vector<std::string_view> names;
  for (const InstructionSet set : instruction_sets()) {
    names.push_back(name(set));
    if (names.back() != text) continue;
    hwy::GetChosenTarget().Update(targets_of(set));
    return set;
  }
  throw ValueError(
      fmt::format("{}: must be one of {} on this processor but is '{}'", what, fmt::join(names, ", "), text));
}

std::atomic<InstructionSet>& in_use() {
  static std::atomic<InstructionSet> set = [] {
    const char* const text = std::getenv("BRAID_ISA");
    return begin("BRAID_ISA", text != nullptr ? text : name(instruction_sets().back()));
  }();
  return set;
}

// Before main, since a fork while another thread chooses the set must wait for it.
[[maybe_unused]] const bool registered = platform::at_fork(
    [] {
      try {
        in_use();
      } catch (const ValueError&) {  // of BRAID_ISA: that of the first operation
      }
    },
    nullptr, nullptr);

}  // namespace

std::string_view name(InstructionSet set) {
  const auto index = static_cast<std::size_t>(set);
  check_value(index < kNames.size(), "InstructionSet: {} is not an instruction set", index);
  return kNames[index];
}

const std::vector<InstructionSet>& instruction_sets() {
  static const std::vector<InstructionSet> sets = [] {
    std::vector<InstructionSet> all{InstructionSet::baseline};
#if HWY_ARCH_X86
    const std::int64_t targets = targets_of(InstructionSet::amx);
    if ((targets & HWY_AVX2) != 0) all.push_back(InstructionSet::avx2);
    if ((targets & HWY_AVX3) != 0) all.push_back(InstructionSet::avx512);
    if ((targets & HWY_AVX3) != 0 && platform::may_use_amx()) all.push_back(InstructionSet::amx);
#elif HWY_ARCH_ARM_A64
    all.push_back(InstructionSet::neon);
#endif
    return all;
  }();
  return sets;
}

InstructionSet instruction_set() { return in_use().load(std::memory_order_relaxed); }

void set_instruction_set(InstructionSet set) {
  std::atomic<InstructionSet>& now = in_use();
  now = begin("set_instruction_set", name(set));
}

const char* kernel_target() {
  const std::int64_t targets = targets_of(instruction_set());
  return hwy::TargetName(targets & -targets);
}

}  // namespace braid
