#pragma once
#include <cstdint>
#include <vector>

#include <braid/autograd/kernels/attention.h>
#include <braid/autograd/tape.h>

namespace braid::detail {

/// What attention computes from, all contiguous but the mask, whose last axis is.
struct AttentionInputs {
  Tensor q;             // [B, T_q, H, D]
  Tensor k, v;          // [B, T_k, H_kv, D]
  Tensor mask;          // [B, H, T_q, T_k], or undefined
  Tensor sinks, alibi;  // [H], or undefined
  kernels::VisibleKeys visible;
  double scale, softcap, dropout;
  Rng rng;
  kernels::amx::Multiply multiply_tiles;  // of bf16, or null

  std::int64_t batch() const { return q.size(0); }
  std::int64_t key_heads() const { return k.size(2); }
  std::int64_t depth() const { return q.size(3); }
};

struct Attended {
  Tensor y;          // [B, T_q, H, D]
  Tensor logsumexp;  // [B, H_kv, T_q, H / H_kv]
};

/// The cotangents of q, k and v, for that of y.
std::vector<Tensor> attention_vjp(const Tensor& dy, const AttentionInputs& in, const Attended& result);

/// The form of attention that is made of other ops.
Var composed_attention(const Var& q, const Var& k, const Var& v, const Var& sinks, const AttentionInputs& in);

/// attention_vjp as an op on q, k, v and dy, without dropout.
std::vector<Var> record_attention_vjp(const Applied& attention, const AttentionInputs& in, const Attended& result);

}  // namespace braid::detail
