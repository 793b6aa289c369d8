#pragma once
#include <tests/random_programs/check.h>

namespace braid::programs {

/// The function of a program as C++: a lambda of `x`, the inputs.
std::string function_text(const Program& program);

/// A test of that name which fails as the program does, for namespace braid::programs; it needs braid/braid.h and
/// tests/random_programs/check.h.
std::string test_text(const Program& program, const Failure& failure, const std::string& name);

}  // namespace braid::programs
