#pragma once
#include <string>

#include <tests/random_programs/check.h>

namespace braid::programs {

/// Attention, an MLP and transformer blocks with every connection and every mixing take turns: so many make a round.
std::uint64_t module_kinds();

/// What the module of an index is, in a line.
std::string module_text(std::uint64_t seed, std::uint64_t index);

/// Checks the module of an index, of random sizes and parameters, as programs are checked, bits included. Sets the
/// number of threads of the process.
std::optional<Failure> check_module(std::uint64_t seed, std::uint64_t index);

}  // namespace braid::programs
