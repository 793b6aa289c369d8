// Every error that a docstring of dist names, but for those of MPI: see tests/throws.h.
#include <tests/throws.h>

#include <braid/autograd/ops.h>
#include <braid/dist/accumulate.h>

namespace braid::dist::throws_test {
namespace {

/// Two ranks that differ.
struct Differing : Communicator {
  int size() const override { return 2; }
  std::string broadcast(const std::string&) override { return "of rank 0"; }
  std::vector<std::string> gather(const std::string& bytes) override { return {"of rank 0", bytes}; }
};

TEST(DistThrows, WithoutMPI) {
  Communicator ranks;
  Tape tape;
  const Var model(ones({3})), watched = tape.watch(ones({3}));
  const auto total = [](const Var& w, std::int64_t) { return sum(w); };
  throws<ShapeError>("dist::accumulate", [&] { accumulate(ranks, 1, model, [](auto& w, auto) { return w; }); });
  throws<ValueError>("dist::accumulate", [&] { accumulate(ranks, 0, model, total); });
  throws<Error>("dist::accumulate", [&] { accumulate(ranks, 1, model, [](auto&, auto) { return Var(scalar(1)); }); });
  throws<Error>("dist::accumulate", [&] { accumulate(ranks, 1, watched, total); });
  throws<Error>("dist::Communicator::check_same", [] { Differing().check_same("text", "of rank 1"); });
  throws<ValueError>("dist::Communicator::block_sum", [&] { ranks.block_sum(0, {}); });
}

}  // namespace
}  // namespace braid::dist::throws_test
