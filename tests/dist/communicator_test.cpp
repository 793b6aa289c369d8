#include <braid/dist/mpi/communicator.h>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <braid/core/error.h>
#include <braid/dist/mpi/detail/world.h>

#include <tests/dist/ranks.h>
#include <tests/support.h>
#include <tests/throws.h>

namespace braid::dist {
namespace {

TEST(Communicator, AnyIsTrueIfItIsOnOneRank) {
  EXPECT_FALSE(ranks().any(false));
  EXPECT_TRUE(ranks().any(true));
  for (int one = 0; one < ranks().size(); ++one) EXPECT_TRUE(ranks().any(ranks().rank() == one));
}

TEST(Communicator, BroadcastsTheBytesOfRank0) {
  const std::string text("zero\0bytes too", 14);
  EXPECT_EQ(ranks().broadcast(ranks().rank() == 0 ? text : "something longer than that"), text);
  EXPECT_EQ(ranks().broadcast(ranks().rank() == 0 ? "" : "x"), "");
  const std::string large(3'000'001, 'y');
  EXPECT_EQ(ranks().broadcast(ranks().rank() == 0 ? large : ""), large);
}

TEST(Communicator, GathersTheBytesOfAllRanksInOrder) {
  const std::vector<std::string> all = ranks().gather(std::string(static_cast<std::size_t>(ranks().rank()), 'r'));
  ASSERT_EQ(static_cast<int>(all.size()), ranks().size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank], std::string(rank, 'r'));
}

TEST(Communicator, CheckSameNamesTheRankThatDiffers) {
  ranks().check_same("text", "a");
  const int last = ranks().size() - 1;
  const std::string message =
      message_of([&] { ranks().check_same("instruction set", ranks().rank() == last ? "AVX2" : "AVX3"); });
  EXPECT_EQ(message, last == 0
                         ? "nothing was thrown"
                         : fmt::format("rank {} has another instruction set than rank 0: AVX2 instead of AVX3", last));
}

TEST(Communicator, CountsTheRanksOnTheSameProcessors) {
  EXPECT_EQ(ranks().sharing_processors(), ranks().size());  // on one machine, bound to no processor
}

TEST(Communicator, CanBeMadeOncePerProcess) {
  EXPECT_EQ(message_of([] { MPICommunicator second("again"); }),
            "dist: a process may have one MPICommunicator, and must not initialize MPI elsewhere");
}

TEST(Communicator, TakesAPatienceFromASecondTo2To24) {
  for (const std::int64_t seconds : {0, 1, 1 << 24, (1 << 24) + 1}) {
    const std::string message = message_of([&] { MPICommunicator second("again", std::chrono::seconds(seconds)); });
    EXPECT_EQ(message.starts_with("dist: patience must be from 1 to 2^24 seconds"),
              seconds == 0 || seconds == (1 << 24) + 1)
        << message;
  }
}

TEST(Communicator, SaysWhyMPIFails) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(MPI_ERR_COUNT, text.data(), &length);
  EXPECT_EQ(message_of([] { detail::check_mpi(MPI_ERR_COUNT); }), "dist: " + text.substr(0, text.find('\0')));
  EXPECT_EQ(message_of([] { detail::check_mpi(MPI_SUCCESS); }), "nothing was thrown");
}

TEST(Communicator, ThrowsAsItsDocstringsSay) {
  using std::chrono::seconds;
  throws<Error>("dist::MPICommunicator::MPICommunicator", [] { MPICommunicator("again"); });
  throws<ValueError>("dist::MPICommunicator::MPICommunicator", [] { MPICommunicator("again", seconds(0)); });
  throws<ValueError>("dist::MPICommunicator::MPICommunicator", [] { MPICommunicator("again", seconds(1 << 25)); });
  throws<ValueError>("dist::MPICommunicator::block_sum", [] { ranks().block_sum(ranks().size() - 1, {}); });
}

}  // namespace
}  // namespace braid::dist
