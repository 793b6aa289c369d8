#pragma once
#include <iosfwd>
#include <string>

#include <braid/autograd/tape.h>
#include <braid/core/format.h>

namespace braid {

/// The printed value of a variable, marked if it is on a tape: `[1. 2.] f32, on a tape`.
std::string to_string(const Var& x, const FormatOptions& options = {});

/// Writes to_string(x).
std::ostream& operator<<(std::ostream& out, const Var& x);

}  // namespace braid

template <>
struct fmt::formatter<braid::Var> : braid::detail::TextFormatter<braid::Var> {};
