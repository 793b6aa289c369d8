// The main of tests that every rank runs; rank 0 tells what it runs, the others what fails.
#include <tests/dist/ranks.h>

#include <memory>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <braid/dist/mpi/communicator.h>

namespace braid::dist {
namespace {

std::unique_ptr<Communicator>& communicator() {
  static std::unique_ptr<Communicator> ranks;
  return ranks;
}

struct TellFailures : testing::EmptyTestEventListener {
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
    listeners.Append(new TellFailures);
  }
  const bool failed = ranks().any(RUN_ALL_TESTS() != 0);
  communicator().reset();
  return failed ? 1 : 0;
}
