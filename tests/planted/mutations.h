#pragma once
#include <functional>

#include <tests/planted/planting.h>

namespace braid::planted {

// Mistakes that any vjp can make. `input` is the one whose cotangent is wrong.

/// What `how` makes of the right cotangent.
WrongVjp changed(std::size_t input, std::function<Var(const Tensor& dx, const Call& call)> how);
WrongVjp scaled(std::size_t input, double factor);
/// With two axes exchanged, where their sizes agree.
WrongVjp transposed(std::size_t input);
/// Moved on by one position of an axis, cyclically.
WrongVjp shifted(std::size_t input, int axis);
/// Right but for one element.
WrongVjp one_element_scaled(std::size_t input, double factor);
WrongVjp swapped(std::size_t a, std::size_t b);
/// Summed over the first position of an axis of dy alone, or over all but the last.
WrongVjp first_only(std::size_t input, int axis);
WrongVjp without_last(std::size_t input, int axis);
/// For a cotangent of ones.
WrongVjp for_ones(std::size_t input);

/// The vjp of another function of the same inputs: what it detaches is what the vjp forgets.
WrongVjp vjp_of(std::function<Var(std::span<const Var> x)> other);
/// Of a function that has all outputs, of which undefined ones are constants; for one input.
WrongVjp vjp_of(std::size_t input, std::function<std::vector<Var>(std::span<const Var> x, const Call& call)> other);

/// v with a gradient that is `factor` times too large.
Var with_scaled_gradient(const Var& v, const Tensor& factor);

}  // namespace braid::planted
