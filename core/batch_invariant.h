#pragma once

namespace braid {

/// While one is alive, matrix products of this thread, and of the blocks of its parallel_for, give each row the same
/// bits whatever other rows they compute: all are computed by braid's own packed product. With a key/value cache, one
/// token at a time then gives the same results as a whole prompt. Large f32 products are slower than oneDNN's.
class BatchInvariant {
 public:
  BatchInvariant();
  ~BatchInvariant();
  BatchInvariant(const BatchInvariant&) = delete;
  BatchInvariant& operator=(const BatchInvariant&) = delete;

  /// Whether one is alive on this thread, or on the thread whose parallel_for this thread runs a block of.
  static bool active();
};

}  // namespace braid
