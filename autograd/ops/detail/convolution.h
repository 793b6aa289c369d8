#pragma once
#include <braid/autograd/ops/detail/window.h>
#include <braid/autograd/tape.h>

namespace braid::detail {

/// The convolution of both conv1d and conv2d, recorded as `op`: x [B, .., C], whose positions `window` covers, weight
/// [out, C / groups, ..], bias [out] or undefined -> y. Throws ShapeError or DTypeError naming `op` when bias does not
/// fit the weight or dtypes do not fit.
Var convolution(const char* op, const Var& x, const Var& weight, const Var& bias, const Window& window,
                std::int64_t groups);

/// Throws ShapeError or ValueError naming `op` unless weight [out, C / groups, ..] fits x [.., C] and the groups.
void check_weight(const char* op, const Shape& x, const Shape& weight, std::int64_t groups);

}  // namespace braid::detail
