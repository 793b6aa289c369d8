#pragma once
#include <cstdint>

namespace braid::kernels {

/// Queries and keys are taken in blocks of this many rows.
inline constexpr std::int64_t kAttentionBlock = 64;

/// One head of causal attention. T is float or double.
template <class T>
struct AttentionHead {
  std::int64_t length, depth;
  std::int64_t stride;  // between rows of q, k, v and their like
  const T *q, *k, *v;   // [length, depth]
};

/// What attention_vjp reads and writes beside the head.
template <class T>
struct AttentionCotangents {
  const T *y, *dy;     // [length, depth]
  const T* logsumexp;  // [length]
  T *dq, *dk, *dv;     // [length, depth]
};

/// Elements of 64-byte aligned scratch memory that either function needs.
std::int64_t attention_scratch(std::int64_t length, std::int64_t depth);

/// y [length, depth] and logsumexp [length] for the query blocks [first, last).
void attention(const AttentionHead<float>& head, std::int64_t first, std::int64_t last, float* y, float* logsumexp,
               float* scratch);
void attention(const AttentionHead<double>& head, std::int64_t first, std::int64_t last, double* y, double* logsumexp,
               double* scratch);

/// dk and dv of the key blocks [first, last); dq [length, depth] receives their share only.
void attention_vjp(const AttentionHead<float>& head, std::int64_t first, std::int64_t last,
                   const AttentionCotangents<float>& out, float* scratch);
void attention_vjp(const AttentionHead<double>& head, std::int64_t first, std::int64_t last,
                   const AttentionCotangents<double>& out, double* scratch);

}  // namespace braid::kernels
