#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// Queries and keys are taken in blocks of this many rows.
inline constexpr std::int64_t kAttentionBlock = 64;

/// One head of causal attention. T is float or double.
template <class T>
struct AttentionHead {
  std::int64_t length, depth;
  std::int64_t stride;  // between rows of q, k, v, y and their cotangents
  const T *q, *k, *v;   // [length, depth]
};

/// The arrays that the vjp reads and writes beside the head's.
template <class T>
struct AttentionCotangents {
  const T *y, *dy;     // [length, depth]
  const T* logsumexp;  // [length]
  T *dq, *dk, *dv;     // [length, depth]
};

/// Elements of 64-byte aligned scratch memory that each kernel needs.
std::int64_t attention_scratch(std::int64_t length, std::int64_t depth);

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct AttentionKernels {
  /// y [length, depth] and logsumexp [length] for the query blocks [first, last).
  void (*forward)(const AttentionHead<T>& head, std::int64_t first, std::int64_t last, T* y, T* logsumexp, T* scratch);
  /// dk and dv of the key blocks [first, last); dq [length, depth] receives their share only.
  void (*vjp)(const AttentionHead<T>& head, std::int64_t first, std::int64_t last, const AttentionCotangents<T>& out,
              T* scratch);
};

Tables<AttentionKernels> attention_kernels();

}  // namespace braid::kernels
