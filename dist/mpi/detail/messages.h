#pragma once
#include <cstddef>
#include <vector>

#include <braid/dist/mpi/detail/world.h>

namespace braid::dist::detail {

/// Pending messages of this rank. Those with one tag between two ranks arrive in the order of sending.
class Messages {
 public:
  explicit Messages(World& world) : world_(world) {}

  // The bytes must stay valid, and those to send unchanged, until arrived() returns true.
  void send(int to, int tag, const std::byte* bytes, std::size_t size);
  void receive(int from, int tag, std::byte* bytes, std::size_t size);

  /// Whether all of them are complete. Does not wait.
  bool arrived();

 private:
  World& world_;
  std::vector<MPI_Request> requests_;
};

}  // namespace braid::dist::detail
