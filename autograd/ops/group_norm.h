#pragma once
#include <concepts>

#include <braid/autograd/ops/channels.h>
#include <braid/autograd/tape.h>

namespace braid {

/// Group normalization: the channels are divided into groups, and each group of each example is normalized over its
/// channels and all other axes, `y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c]`. x [B, ..., C], or [B, C, ...]
/// with Channels::first, as in PyTorch; weight [C], bias [C], of x's dtype or f32 for bf16 -> the shape of x. Throws
/// ShapeError or DTypeError unless weight and bias match x, which is of floats, ValueError unless `groups` divides C.
/// arXiv:1803.08494.
Var group_norm(const Var& x, std::int64_t groups, const Var& weight, const Var& bias, double eps = 1e-5,
               Channels channels = Channels::last);

/// The same without weight and bias.
Var group_norm(const Var& x, std::int64_t groups, double eps = 1e-5, Channels channels = Channels::last);

template <std::floating_point T, class... Rest>
Var group_norm(const Var& x, T groups, const Rest&... rest) = delete;

}  // namespace braid
