#pragma once
#include <functional>

#include <tests/planted/planting.h>

namespace braid::planted::rules {

// Mistakes that any rule can make. `input` is the one whose cotangent is wrong.

/// What `how` makes of the right cotangent.
WrongRule changed(std::size_t input, std::function<Var(const Var& dx, const Applied& op)> how);
WrongRule scaled(std::size_t input, double factor);
/// Moved on by one position of an axis, cyclically.
WrongRule shifted(std::size_t input, int axis);
WrongRule swapped(std::size_t a, std::size_t b);
/// Summed over the first position of an axis of dy alone.
WrongRule first_only(std::size_t input, int axis);

/// Right, but computed with values: its derivatives lack what flows through the inputs, the outputs, or dy.
WrongRule of_constant_inputs();
WrongRule of_constant_outputs();
WrongRule of_constant_dys();

}  // namespace braid::planted::rules
