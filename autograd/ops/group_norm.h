#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// Group normalization: the channels are divided into groups, and each group of each example is normalized over its
/// channels and all other axes, `y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c]`. x [B, C, ...], channels in
/// axis 1 as in PyTorch; weight [C], bias [C] -> [B, C, ...]. Throws ShapeError unless weight and bias match x,
/// ValueError unless `groups` divides C. arXiv:1803.08494.
Var group_norm(const Var& x, std::int64_t groups, const Var& weight, const Var& bias, double eps = 1e-5);

/// The same without weight and bias.
Var group_norm(const Var& x, std::int64_t groups, double eps = 1e-5);

}  // namespace braid
