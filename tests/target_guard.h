#pragma once
#include <cstdint>

#include <hwy/targets.h>

#include <braid/core/instruction_set.h>

namespace braid {

/// Makes kernels run as on a processor that has this SIMD target at best: by the next one, where they were not compiled
/// for it, as without BRAID_AVX512.
class TargetGuard {
 public:
  explicit TargetGuard(std::int64_t target) { hwy::GetChosenTarget().Update(hwy::SupportedTargets() & -target); }
  ~TargetGuard() { set_instruction_set(instruction_set()); }
  TargetGuard(const TargetGuard&) = delete;
  TargetGuard& operator=(const TargetGuard&) = delete;
};

}  // namespace braid
