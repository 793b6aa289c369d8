#pragma once
#include <string>
#include <vector>

#include <tests/planted/planting.h>

namespace braid::planted {

/// A mistake in the vjp of one op.
struct Error {
  std::string op, words;
  WrongVjp wrong;
};

/// Of the ops of autograd/ and of mhc/.
std::vector<Error> op_errors();
std::vector<Error> mhc_errors();

}  // namespace braid::planted
