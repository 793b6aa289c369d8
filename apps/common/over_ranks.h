#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "ranks.h"

namespace braid::examples {

/// Runs `body` on the ranks that a launcher started, or on this process alone, and returns its exit code. Only rank 0
/// writes to stdout. Where a rank throws, all end, with the exit code and the one line that run_main has for it.
/// Threads are shared among the ranks that have the same processors. Throws ValueError where there are several ranks
/// but this program was built without MPI.
int over_ranks(std::string_view program, const std::function<int(const Ranks&)>& body);

/// Joins them: ranks_over_mpi.cpp, or ranks_without_mpi.cpp, which throws.
std::shared_ptr<OtherRanks> join_ranks(std::string_view program);

}  // namespace braid::examples
