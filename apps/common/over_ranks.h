#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include <braid/dist/communicator.h>

namespace braid::examples {

/// Runs `body` on the ranks that a launcher of MPI started, or on this process alone, and returns its exit code. Only
/// rank 0 writes to stdout. When a rank throws, all end, with run_main's exit code and line for the exception. Ranks
/// that have the same processors share the threads. Throws ValueError when a launcher started several ranks but this
/// program was built without MPI.
int over_ranks(std::string_view program, const std::function<int(const std::shared_ptr<dist::Communicator>&)>& body);

}  // namespace braid::examples
