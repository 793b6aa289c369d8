#pragma once
#include <span>
#include <utility>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::mhc {

/// Attention over depth: `y = sum_i weights_i v_i`, `weights = softmax_i(query . (norm v_i / sqrt(mean(v_i^2) + eps)))`
/// of N states v_i [..., C] -> [..., C], in one pass forward and one backward. query, norm [C], f32 for states of bf16.
/// Throws ShapeError unless there is a state and all fit, DTypeError unless their types do. arXiv:2603.15031.
Var attention_residual(const Var& query, const Var& norm, std::span<const Var> states, double eps = 1e-6);

/// The same and the states as they are. Where each of several reads takes the states that the one before returned, the
/// backward pass adds the parts of a state's gradient in place; otherwise like attention_residual.
std::pair<Var, std::vector<Var>> attention_residual_in_turn(const Var& query, const Var& norm, std::vector<Var> states,
                                                            double eps = 1e-6);

/// Its weights [N, ...], composed of other ops; otherwise like attention_residual.
Var attention_residual_weights(const Var& query, const Var& norm, std::span<const Var> states, double eps = 1e-6);

}  // namespace braid::mhc
