#pragma once
#include <optional>

#include <bench/mhc_operations.h>

namespace braid::bench {

enum class Mode {
  throughput,  ///< many calls over buffers that together exceed all caches
  latency,     ///< one call after the other on the same buffers
};

enum class Pass { forward, forward_backward };

/// An operation ready to be called: fused and composed, each call on the next buffers of a ring that holds inputs as
/// well as results.
class Workload {
 public:
  Workload(const MHCOperation& operation, Mode mode);

  /// The difference between the fused and the composed form in words; empty if there is none.
  std::string difference() const;

  /// Fills the ring with results, so that later calls reuse their memory; once per pass.
  void warm_up(Pass pass);

  /// Makes `calls()` calls. Small ones run in parallel, one per thread; a large one uses all threads.
  void run(Form form, Pass pass);
  std::int64_t calls() const { return calls_; }

 private:
  struct Buffers {
    Tensors inputs;
    Tensor dy;
    Tensors results;
  };

  MHCOperation operation_;
  std::vector<Buffers> ring_;
  std::size_t next_ = 0;
  std::optional<Pass> warm_;
  std::int64_t calls_;
};

}  // namespace braid::bench
