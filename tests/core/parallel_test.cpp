#include <braid/core/parallel.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/kernels/scratch.h>
#include <tests/failing_allocations.h>
#include <tests/support.h>

namespace braid::parallel_test {
namespace {

std::set<std::pair<std::int64_t, std::int64_t>> blocks_of(std::int64_t n, std::int64_t block) {
  std::mutex mutex;
  std::set<std::pair<std::int64_t, std::int64_t>> blocks;
  parallel_for(n, block, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    blocks.emplace(begin, end);
  });
  return blocks;
}

TEST(Parallel, CoversEachIndexExactlyOnce) {
  for (const int threads : {1, 2, 3, 16}) {
    const WithThreads with_threads(threads);
    for (const std::int64_t n : {0, 1, 7, 8, 9, 1000}) {
      for (const std::int64_t block : {1, 3, 8, 2000}) {
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
        parallel_for(n, block, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        for (const auto& count : visits) EXPECT_EQ(count, 1);
      }
    }
  }
}

TEST(Parallel, BlocksDoNotDependOnTheNumberOfThreads) {
  const std::set<std::pair<std::int64_t, std::int64_t>> expected = {{0, 4}, {4, 8}, {8, 10}};
  for (const int threads : {1, 2, 3, 16}) {
    const WithThreads with_threads(threads);
    EXPECT_EQ(blocks_of(10, 4), expected);
  }
}

TEST(Parallel, SeesTheWritesOfAllBlocksOfManyCalls) {
  const WithThreads with_threads(3);
  std::vector<std::int64_t> sums(16, 0);
  for (std::int64_t round = 0; round < 5000; ++round) {
    parallel_for(16, 1, [&](std::int64_t begin, std::int64_t) { sums[static_cast<std::size_t>(begin)] += round; });
  }
  EXPECT_EQ(sums, std::vector<std::int64_t>(16, 5000 * 4999 / 2));
}

TEST(Parallel, ThrowsTheExceptionOfABlockAndStaysUsable) {
  for (const int threads : {1, 4}) {
    const WithThreads with_threads(threads);
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(message_of([] {
                  parallel_for(50, 1, [](std::int64_t begin, std::int64_t) {
                    if (begin == 20) throw std::runtime_error("block 20");
                  });
                }),
                "block 20");
      EXPECT_EQ(blocks_of(50, 1).size(), 50U);
    }
  }
}

TEST(Parallel, SkipsTheBlocksNotYetBegunWhenOneThrows) {
  const WithThreads two(2);
  std::atomic<int> begun = 0;
  const auto fail_at_first = [&](std::int64_t begin, std::int64_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();  // until both threads work
    if (begin == 0) throw std::runtime_error("block 0");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_THROW(parallel_for(5000, 1, fail_at_first), std::runtime_error);
  EXPECT_LT(begun, 5000);
}

TEST(Parallel, BringsTheFailureOfAnyAllocationToTheCaller) {
  const WithThreads with_threads(4);
  const std::int64_t live = memory_stats().live_bytes;
  for (int failures = 0; failures < 50; ++failures) {
    release_cached_memory();
    const FailingAllocations faults({.after = failures, .times = 1 << 20});
    std::vector<Tensor> tensors(50);
    const auto allocate = [&](std::int64_t begin, std::int64_t) {
      tensors[static_cast<std::size_t>(begin)] = Tensor({8}, DType::f32);
    };
    EXPECT_THROW(parallel_for(50, 1, allocate), std::bad_alloc);
    EXPECT_EQ(std::ranges::count_if(tensors, &Tensor::defined), failures);
    tensors.clear();
    EXPECT_EQ(memory_stats().live_bytes, live);
  }
}

TEST(Parallel, NestsOnTheThreadOfTheOuterBlock) {
  const WithThreads with_threads(4);
  std::atomic<int> visits = 0;
  parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(10, 2, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      visits += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(visits, 80);
}

TEST(Parallel, WorksFromSeveralUserThreads) {
  const WithThreads with_threads(3);
  std::atomic<std::int64_t> total = 0;
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        parallel_for(20, 3, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(total, 4 * 200 * 20);
}

/// Ends only if two blocks run on two threads.
void meet() {
  std::atomic<int> arrived = 0;
  parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
}

TEST(Parallel, WakesWorkersThatSleep) {
  const WithThreads with_threads(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    meet();
  }
}

bool is_child = false;

// After the destructors, before LeakSanitizer, for which what the parent's threads own is lost in a child.
[[maybe_unused]] const int leaves_early = std::atexit([] {
  if (is_child) _exit(0);
});

/// How a child that runs `body` and then exit() ends: 0 for well.
int status_of_child(const auto& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    is_child = true;
    alarm(60);  // instead of waiting forever
    body();
    std::exit(0);  // with all destructors
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

void expect_that_threads_work() {
  std::vector<std::int64_t> sums(64, 0);
  for (std::int64_t round = 0; round < 100; ++round)
    parallel_for(64, 1, [&](std::int64_t begin, std::int64_t) { sums[static_cast<std::size_t>(begin)] += round; });
  if (sums != std::vector<std::int64_t>(64, 99 * 50)) std::abort();
}

// ThreadSanitizer and QEMU know no threads that start after a fork.
#if defined(__SANITIZE_THREAD__) || defined(BRAID_EMULATED)
constexpr bool kChildMayStartThreads = false;
#else
constexpr bool kChildMayStartThreads = true;
#endif

// AddressSanitizer's own allocator may be locked at a fork, and is so forever in the child.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kMayForkBesideAllocations = false;
#else
constexpr bool kMayForkBesideAllocations = true;
#endif

TEST(Parallel, GoesOnInTheChildOfAFork) {
  for (const int threads : {1, 2, 4}) {
    const WithThreads with_threads(threads);
    expect_that_threads_work();
    EXPECT_EQ(status_of_child([] {}), 0);
    const auto body = [=] {
      if (num_threads() != threads) std::abort();
      expect_that_threads_work();
      set_num_threads(3);
      expect_that_threads_work();
      if (status_of_child(expect_that_threads_work) != 0) std::abort();
    };
    if (kChildMayStartThreads && kMayForkBesideAllocations) {  // a worker may be starting still
      EXPECT_EQ(status_of_child(body), 0);
    }
    expect_that_threads_work();
  }
}

TEST(Parallel, ForksWhileAnotherThreadWorks) {
  if (!kChildMayStartThreads || !kMayForkBesideAllocations) GTEST_SKIP();
  const WithThreads with_threads(3);
  std::atomic<bool> done = false;
  std::thread worker([&] {
    while (!done) {
      expect_that_threads_work();
      for (int i = 0; i < 1000; ++i) const Tensor t({100}, DType::f32);
    }
  });
  const auto body = [] {
    expect_that_threads_work();
    const Tensor t = ones({1000});
  };
  for (int round = 0; round < 50; ++round) EXPECT_EQ(status_of_child(body), 0);
  done = true;
  worker.join();
}

TEST(Parallel, ForksWhileAnotherThreadMakesItsFirstTensor) {
  if (!kChildMayStartThreads || !kMayForkBesideAllocations) GTEST_SKIP();
  const auto body = [] {
    const Tensor t = ones({1000});
    expect_that_threads_work();
  };
  for (int round = 0; round < 200; ++round) {
    const int status = status_of_child([&] {  // a process that has neither an allocator nor workers
      std::atomic<bool> started = false;
      std::thread worker([&] {
        started = true;
        body();
      });
      while (!started) {
      }
      if (status_of_child(body) != 0) std::abort();
      worker.join();
    });
    ASSERT_EQ(status, 0) << "in round " << round;
  }
}

TEST(Scratch, LendsToThreadsThatCameLater) {
  const WithThreads one(1);
  kernels::Scratch<float> scratch(8);
  const WithThreads two(2);
  std::atomic<int> begun = 0, lent = 0;
  parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();  // until both threads work
    scratch.lend([&](float*) { ++lent; });
  });
  EXPECT_EQ(lent, 2);
}

TEST(Parallel, TakesCallablesByReference) {
  std::int64_t total = 0;
  const auto add = [&total](std::int64_t begin, std::int64_t end) { total += end - begin; };
  parallel_for(5, 5, add);
  EXPECT_EQ(total, 5);
}

TEST(Parallel, RejectsBadArguments) {
  EXPECT_EQ(message_of([] { set_num_threads(0); }), "set_num_threads: count must be from 1 to 1024 but is 0");
  EXPECT_EQ(message_of([] { set_num_threads(1025); }), "set_num_threads: count must be from 1 to 1024 but is 1025");
  EXPECT_EQ(message_of([] { parallel_for(1, 0, [](std::int64_t, std::int64_t) {}); }),
            "parallel_for: block must be >= 1 but is 0");
  EXPECT_THROW(set_num_threads(-1), ValueError);
  const WithThreads most(1024);
  EXPECT_EQ(num_threads(), 1024);
}

TEST(Parallel, RejectsANewNumberOfThreadsInsideABlock) {
  const WithThreads with_threads(2);
  EXPECT_THROW(parallel_for(2, 1, [](std::int64_t, std::int64_t) { set_num_threads(3); }), Error);
  parallel_for(1, 1, [](std::int64_t, std::int64_t) { set_num_threads(1); });  // a single block, of no other thread
  parallel_for(2, 1, [](std::int64_t, std::int64_t) { set_num_threads(1); });
}

TEST(Parallel, LetsAProcessExitInsideABlock) {
#ifdef BRAID_EMULATED
  GTEST_SKIP() << "an emulated process cannot start its own program anew";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, as it has threads
  for (const std::int64_t exiting : {0, 63})
    EXPECT_EXIT(
        {
          set_num_threads(3);
          parallel_for(64, 1, [&](std::int64_t begin, std::int64_t) {
            if (begin == exiting) std::exit(7);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          });
        },
        testing::ExitedWithCode(7), "");
}

TEST(Parallel, BeginsWithTheThreadsThatTheEnvironmentAsksFor) {
#ifdef BRAID_EMULATED
  GTEST_SKIP() << "an emulated process cannot start its own program anew";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const asked = std::getenv("BRAID_NUM_THREADS");
  const std::string before = asked == nullptr ? "" : asked;
  setenv("BRAID_NUM_THREADS", "2", 1);
  EXPECT_EXIT(
      {
        alarm(60);  // instead of waiting forever
        meet();
        std::exit(num_threads());
      },
      testing::ExitedWithCode(2), "");
  asked == nullptr ? unsetenv("BRAID_NUM_THREADS") : setenv("BRAID_NUM_THREADS", before.c_str(), 1);
}

}  // namespace
}  // namespace braid::parallel_test
