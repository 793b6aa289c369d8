#pragma once
#include <vector>

#include <tests/planted/planting.h>

namespace braid::planted {

/// In vjps of ops of autograd/ and of mhc/.
std::vector<Error> op_errors();
std::vector<Error> mhc_errors();
/// In rules.
std::vector<Error> rule_errors();

}  // namespace braid::planted
