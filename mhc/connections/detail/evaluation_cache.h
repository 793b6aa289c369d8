#pragma once
#include <algorithm>
#include <initializer_list>
#include <mutex>
#include <vector>

#include <braid/autograd/tape.h>
#include <braid/mhc/mixings/composed.h>

namespace braid::mhc {

/// Caches a function of small constant parameters until their bits change. Bits are compared, not identities, because
/// optimizers write in place; a few dozen values cost nothing. Copies do not share it. Thread-safe.
class EvaluationCache {
 public:
  EvaluationCache() = default;
  EvaluationCache(const EvaluationCache&) {}
  EvaluationCache& operator=(const EvaluationCache&) { return *this; }

  /// `compute()`, a function of `params` alone, or the result of an earlier call. Always computes for parameters on a
  /// tape and for composed forms.
  Var get(std::initializer_list<Var> params, auto compute) const {
    if (composed() || std::ranges::any_of(params, &Var::requires_grad)) return compute();
    const std::lock_guard lock(mutex_);
    const auto same = [](const Tensor& key, const Var& param) { return identical(key, param.value()); };
    if (!std::ranges::equal(keys_, params, same)) {
      result_ = compute();
      // Clones: sharing the storage would keep optimizers from writing to it.
      keys_.clear();
      for (const Var& param : params) keys_.push_back(param.value().clone());
    }
    return result_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<Tensor> keys_;
  mutable Var result_;
};

}  // namespace braid::mhc
