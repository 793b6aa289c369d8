#pragma once
#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include <braid/autograd/tape.h>
#include <braid/mhc/mixings/composed.h>

namespace braid::mhc {

/// Caches a function of N small constant parameters until their bits change. Bits are compared, not identities, because
/// optimizers write in place; a few dozen values cost nothing.
/// Copies start empty. Safe to use from several threads.
template <std::size_t N>
class EvaluationCache {
 public:
  EvaluationCache() = default;
  EvaluationCache(const EvaluationCache&) {}
  EvaluationCache& operator=(const EvaluationCache&) {
    const std::lock_guard lock(mutex_);
    result_.reset();
    return *this;
  }

  /// `compute()`, or the result of an earlier call. Always computes for parameters on a tape and for composed forms.
  template <class F>
  Var get(const std::array<Var, N>& params, F compute) const {
    if (composed() || std::ranges::any_of(params, &Var::requires_grad)) return compute();
    const std::lock_guard lock(mutex_);
    const auto same = [](const Tensor& key, const Var& param) { return identical(key, param.value()); };
    if (!result_ || !std::ranges::equal(keys_, params, same)) {
      result_ = compute();
      // Clones: sharing the storage would keep optimizers from writing to it.
      for (std::size_t i = 0; i < N; ++i) keys_[i] = params[i].value().clone();
    }
    return *result_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::array<Tensor, N> keys_;
  mutable std::optional<Var> result_;
};

}  // namespace braid::mhc
