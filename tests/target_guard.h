#pragma once
#include <cstdint>

#include <hwy/targets.h>

namespace braid {

/// Makes kernels run as on a processor that has this SIMD target at best.
class TargetGuard {
 public:
  explicit TargetGuard(std::int64_t target) { hwy::GetChosenTarget().Update(target); }
  ~TargetGuard() { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
  TargetGuard(const TargetGuard&) = delete;
  TargetGuard& operator=(const TargetGuard&) = delete;
};

}  // namespace braid
