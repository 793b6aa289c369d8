#include <braid/dist/mpi/detail/messages.h>

namespace braid::dist::detail {

void Messages::send(int to, int tag, const std::byte* bytes, std::size_t size) {
  post_pieces(bytes, size, [&](const std::byte* piece, int count) {
    check_mpi(MPI_Isend(piece, count, MPI_BYTE, to, tag, world_.comm, &requests_.emplace_back(MPI_REQUEST_NULL)));
  });
  world_.traffic.bytes_sent += static_cast<double>(size);
}

void Messages::receive(int from, int tag, std::byte* bytes, std::size_t size) {
  post_pieces(bytes, size, [&](std::byte* piece, int count) {
    check_mpi(MPI_Irecv(piece, count, MPI_BYTE, from, tag, world_.comm, &requests_.emplace_back(MPI_REQUEST_NULL)));
  });
}

bool Messages::arrived() {
  int all = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE));
  if (all != 0) requests_.clear();
  return all != 0;
}

}  // namespace braid::dist::detail
