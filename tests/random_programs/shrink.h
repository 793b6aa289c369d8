#pragma once
#include <tests/random_programs/check.h>

namespace braid::programs {

/// A smaller program in which `check` finds the same fault, as small as single steps make it: results dropped, values
/// given as inputs, sizes reduced, layouts and settings simpler, rounder numbers.
Program shrunk(const Program& program, Fault fault, Check* check = check_program);

}  // namespace braid::programs
