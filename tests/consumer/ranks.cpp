#include <fmt/format.h>

#include <braid/braid.h>
#include <braid/dist/mpi/communicator.h>

int main() {
  using namespace braid;
  dist::MPICommunicator ranks("ranks");
  const auto [loss, gradient] =
      dist::accumulate(ranks, 4, Var(ones({3})), [](const Var& w, std::int64_t) { return sum(w * w); });
  fmt::print("rank {} of {}: {}\n", ranks.rank(), ranks.size(), loss);
}
