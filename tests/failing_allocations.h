#pragma once

namespace braid {

/// While one is alive, allocations on all threads fail: `times` of them, after the first `after`.
class FailingAllocations {
 public:
  struct Which {
    int after;
    int times;
    bool all = false;  ///< those of `operator new` without an alignment too; else of tensor storage alone
  };
  explicit FailingAllocations(Which which);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  /// Whether any has failed.
  bool failed() const;
};

}  // namespace braid
