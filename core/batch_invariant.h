#pragma once
#include <braid/core/scope.h>

namespace braid {

/// While one is alive, matrix products of this thread, and of the blocks of its parallel_for, give each row the same
/// bits whatever other rows they compute: all are computed by braid's own packed product. With a key/value cache, one
/// token at a time then gives the same results as a whole prompt. Large f32 products are slower than oneDNN's. Threads
/// that run blocks of a parallel_for have one where the thread that called it has.
class BatchInvariant : public Scope<BatchInvariant> {};

}  // namespace braid
