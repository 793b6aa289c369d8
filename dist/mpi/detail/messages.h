#pragma once
#include <cstddef>
#include <vector>

#include <braid/dist/mpi/detail/world.h>

namespace braid::dist::detail {

/// Messages between ranks that are under way. Those with one tag between two ranks arrive in the order of sending.
class Messages {
 public:
  explicit Messages(World& world) : world_(world) {}
  Messages(Messages&&) = default;

  // The bytes stay as they are until arrived() says so.
  void send(int to, int tag, const std::byte* bytes, std::size_t count);
  void receive(int from, int tag, std::byte* bytes, std::size_t count);

  /// Whether all have, without waiting.
  bool arrived();

 private:
  World& world_;
  std::vector<MPI_Request> requests_;
};

}  // namespace braid::dist::detail
