#pragma once
#include <ostream>
#include <string>

#include <braid/autograd/tape.h>
#include <braid/core/format.h>

namespace braid {

/// The printed value of a variable, marked if it is on a tape: `[1. 2.] f32, on a tape`.
inline std::string to_string(const Var& x, const FormatOptions& options = {}) {
  return to_string(x.value(), options) + (x.requires_grad() ? ", on a tape" : "");
}

/// Writes to_string(x).
inline std::ostream& operator<<(std::ostream& out, const Var& x) { return out << to_string(x); }

}  // namespace braid

template <>
struct fmt::formatter<braid::Var> : braid::detail::TextFormatter<braid::Var> {};
