// The main function of tests that every rank runs. Rank 0 prints all results, the others only failures.
#include <tests/dist/ranks.h>

#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <braid/dist/mpi/communicator.h>

namespace braid::dist {
namespace {

std::unique_ptr<Communicator>& communicator() {
  static std::unique_ptr<Communicator> ranks;
  return ranks;
}

struct PrintFailures : testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      fmt::print(stderr, "rank {}: {}:{}: {}\n", ranks().rank(), result.file_name(), result.line_number(),
                 result.message());
  }
};

}  // namespace

Communicator& ranks() { return *communicator(); }

}  // namespace braid::dist

int main(int argc, char** argv) {
  using namespace braid::dist;
  testing::InitGoogleTest(&argc, argv);
  communicator() = std::make_unique<MPICommunicator>("dist_ranks");
  if (ranks().rank() > 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new PrintFailures);
  }
  const bool failed = ranks().any(RUN_ALL_TESTS() != 0);
  communicator().reset();
  return failed ? 1 : 0;
}
