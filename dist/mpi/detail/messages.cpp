#include <braid/dist/mpi/detail/messages.h>

#include <algorithm>

namespace braid::dist::detail {
namespace {

/// MPI counts in int.
constexpr std::size_t kPiece = std::size_t{1} << 30;

template <class Bytes, class Post>
void post_pieces(Bytes* bytes, std::size_t count, std::vector<MPI_Request>& requests, Post post) {
  for (std::size_t at = 0; at < count; at += kPiece) {
    requests.push_back(MPI_REQUEST_NULL);
    check_mpi(post(bytes + at, static_cast<int>(std::min(kPiece, count - at)), &requests.back()));
  }
}

}  // namespace

void Messages::send(int to, int tag, const std::byte* bytes, std::size_t count) {
  post_pieces(bytes, count, requests_, [&](const std::byte* from, int size, MPI_Request* request) {
    return MPI_Isend(from, size, MPI_BYTE, to, tag, world_.mpi.comm, request);
  });
  world_.traffic.bytes_sent += static_cast<double>(count);
}

void Messages::receive(int from, int tag, std::byte* bytes, std::size_t count) {
  post_pieces(bytes, count, requests_, [&](std::byte* into, int size, MPI_Request* request) {
    return MPI_Irecv(into, size, MPI_BYTE, from, tag, world_.mpi.comm, request);
  });
}

bool Messages::arrived() {
  int all = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE));
  if (all != 0) requests_.clear();
  return all != 0;
}

}  // namespace braid::dist::detail
