#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include <braid/dist/communicator.h>

namespace braid::apps {

/// Runs `body` on the ranks that an MPI launcher started, or on this process alone, and returns its exit code. Only
/// rank 0 writes to stdout. When a rank throws, all end with the exit code and the line that run_main has for the
/// exception, and all end when one is silent for `patience`. Ranks on the same processors divide the threads among
/// themselves. Throws ValueError when a launcher started several ranks but this program was built without MPI.
int over_ranks(std::string_view program, std::chrono::seconds patience,
               const std::function<int(const std::shared_ptr<dist::Communicator>&)>& body);

}  // namespace braid::apps
