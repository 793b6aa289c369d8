#pragma once

namespace braid {

/// While one is alive, products that this thread asks for, and the blocks of its parallel_for, give each row the same
/// bits whatever other rows are computed with it: all go to braid's own packed product, f32 ones too. What a key/value
/// cache needs, for one token at a time to be what a whole prompt is. Large f32 products take longer than oneDNN's.
class BatchInvariant {
 public:
  BatchInvariant();
  ~BatchInvariant();
  BatchInvariant(const BatchInvariant&) = delete;
  BatchInvariant& operator=(const BatchInvariant&) = delete;

  /// Whether one is alive on this thread, or on that whose parallel_for runs here.
  static bool active();
};

namespace detail {
/// For the threads of parallel_for, which take it over from the thread that calls.
void set_batch_invariant(bool active);
}  // namespace detail

}  // namespace braid
