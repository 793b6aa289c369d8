#pragma once

namespace braid {

/// While one is alive, the allocations of tensor storage, on all threads, fail: `times` of them, after the first
/// `after`.
class FailingAllocations {
 public:
  struct Which {
    int after;
    int times;
  };
  explicit FailingAllocations(Which which);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  /// Whether any has failed.
  bool failed() const;
};

}  // namespace braid
