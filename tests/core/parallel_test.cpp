#include <braid/core/parallel.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tests/support.h>

namespace braid {
namespace {

std::set<std::pair<int64_t, int64_t>> blocks_of(int64_t n, int64_t block) {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> blocks;
  parallel_for(n, block, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    blocks.emplace(begin, end);
  });
  return blocks;
}

TEST(Parallel, CoversEachIndexExactlyOnce) {
  for (const int threads : {1, 2, 3, 16}) {
    const WithThreads with_threads(threads);
    for (const int64_t n : {0, 1, 7, 8, 9, 1000}) {
      for (const int64_t block : {1, 3, 8, 2000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
        parallel_for(n, block, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        for (const auto& count : visits) EXPECT_EQ(count, 1);
      }
    }
  }
}

TEST(Parallel, BlocksDoNotDependOnTheNumberOfThreads) {
  const std::set<std::pair<int64_t, int64_t>> expected = {{0, 4}, {4, 8}, {8, 10}};
  for (const int threads : {1, 2, 3, 16}) {
    const WithThreads with_threads(threads);
    EXPECT_EQ(blocks_of(10, 4), expected);
  }
}

TEST(Parallel, SeesTheWritesOfAllBlocksOfManyCalls) {
  const WithThreads with_threads(3);
  std::vector<int64_t> sums(16, 0);
  for (int64_t round = 0; round < 5000; ++round) {
    parallel_for(16, 1, [&](int64_t begin, int64_t) { sums[static_cast<size_t>(begin)] += round; });
  }
  EXPECT_EQ(sums, std::vector<int64_t>(16, 5000 * 4999 / 2));
}

TEST(Parallel, ThrowsTheExceptionOfABlockAndStaysUsable) {
  for (const int threads : {1, 4}) {
    const WithThreads with_threads(threads);
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(message_of([] {
                  parallel_for(50, 1, [](int64_t begin, int64_t) {
                    if (begin == 20) throw std::runtime_error("block 20");
                  });
                }),
                "block 20");
      EXPECT_EQ(blocks_of(50, 1).size(), 50U);
    }
  }
}

TEST(Parallel, NestsOnTheThreadOfTheOuterBlock) {
  const WithThreads with_threads(4);
  std::atomic<int> visits = 0;
  parallel_for(8, 1, [&](int64_t, int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(10, 2, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      visits += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(visits, 80);
}

TEST(Parallel, WorksFromSeveralUserThreads) {
  const WithThreads with_threads(3);
  std::atomic<int64_t> total = 0;
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        parallel_for(20, 3, [&](int64_t begin, int64_t end) { total += end - begin; });
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(total, 4 * 200 * 20);
}

TEST(Parallel, WakesWorkersThatSleep) {
  const WithThreads with_threads(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> arrived = 0;
    parallel_for(2, 1, [&](int64_t, int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();  // ends only if the two blocks run on two threads
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(Parallel, TakesCallablesByReference) {
  int64_t total = 0;
  const auto add = [&total](int64_t begin, int64_t end) { total += end - begin; };
  parallel_for(5, 5, add);
  EXPECT_EQ(total, 5);
}

TEST(Parallel, RejectsBadArguments) {
  EXPECT_EQ(message_of([] { set_num_threads(0); }), "set_num_threads: count must be >= 1 but is 0");
  EXPECT_EQ(message_of([] { parallel_for(1, 0, [](int64_t, int64_t) {}); }),
            "parallel_for: block must be >= 1 but is 0");
  EXPECT_THROW(set_num_threads(-1), ValueError);
}

TEST(Parallel, RejectsANewNumberOfThreadsInsideABlock) {
  const WithThreads with_threads(2);
  EXPECT_THROW(parallel_for(2, 1, [](int64_t, int64_t) { set_num_threads(3); }), Error);
}

}  // namespace
}  // namespace braid
