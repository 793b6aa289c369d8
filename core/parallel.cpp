#include <braid/core/parallel.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <braid/core/batch_invariant.h>
#include <braid/core/error.h>
#include <braid/core/platform/process.h>

namespace braid {
namespace {

/// The time a thread spins before it sleeps. A training step forks every 10-100 us; a futex wake takes 5-50 us.
constexpr std::chrono::microseconds kSpin{60};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Returns when done(value of state) holds: spins first, then sleeps until state is notified.
void await(const std::atomic<std::uint32_t>& state, auto done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done(state.load(std::memory_order_acquire))) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  for (std::uint32_t value = state.load(); !done(value); value = state.load()) state.wait(value);
}

thread_local bool inside_block = false;  // of this thread: a nested parallel_for must not use the pool
thread_local int index_of_thread = 0;

struct Job {
  std::int64_t n = 0;
  std::int64_t block = 1;
  std::int64_t blocks = 0;
  const detail::BlockBody* body = nullptr;
  bool batch_invariant = BatchInvariant::active();

  void run_block(std::int64_t index) const {
    const std::int64_t begin = index * block;
    (*body)(begin, std::min(begin + block, n));
  }
};

constexpr int kMostThreads = 1024;

int default_num_threads() {
  const char* const text = std::getenv("BRAID_NUM_THREADS");
  if (text == nullptr) return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::string_view digits(text);
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  check_value(error == std::errc() && end == digits.data() + digits.size() && count >= 1 && count <= kMostThreads,
              "BRAID_NUM_THREADS: must be a whole number from 1 to {} but is '{}'", kMostThreads, digits);
  return count;
}

/// The blocks that a thread takes before it helps others, the same in every job of that size: it may cache their data.
struct alignas(64) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

/// Persistent workers and one job at a time. The caller publishes a job, opens the gate and takes blocks itself;
/// workers that wake in time enter and take blocks too. The caller then closes the gate and waits for the entered ones
/// only, so that a worker that wakes late delays no one.
class Pool {
 public:
  /// Never destroyed: exit() inside a block would wait for its own thread.
  static Pool& instance() {
    static Pool& pool = *new Pool(default_num_threads());
    return pool;
  }
  /// The instance, or null where the environment has no valid number of threads for it.
  static Pool* instance_or_null() noexcept {
    try {
      return &instance();
    } catch (const ValueError&) {
      return nullptr;
    }
  }

  explicit Pool(int num_threads) : num_threads_(num_threads), shares_(num_threads) {}

  int num_threads() const { return num_threads_.load(std::memory_order_relaxed); }

  void resize(int count) {
    const std::lock_guard lock(mutex_);
    if (count == num_threads()) return;
    stop_workers();
    shares_ = std::vector<Share>(count);
    num_threads_.store(count, std::memory_order_relaxed);
  }

  void run(const Job& job) {
    const std::lock_guard lock(mutex_);
    start_workers();
    job_ = job;
    deal_blocks();
    gate_.store(kOpen, std::memory_order_release);
    wake_workers();
    inside_block = true;
    take_blocks(0);
    inside_block = false;
    gate_.fetch_and(~kOpen);
    await(gate_, [](std::uint32_t gate) { return gate == 0; });
    if (failed_.exchange(false, std::memory_order_relaxed)) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// In the child of a fork, which has no workers, and whose mutex another thread may have held: nothing of the
  /// parent's is joined, unlocked or destroyed.
  void begin_anew() { std::construct_at(this, num_threads()); }

 private:
  static constexpr std::uint32_t kOpen = 1U << 31;  // the other bits of the gate count the workers inside

  void start_workers() {
    const std::uint32_t seen = epoch_.load();
    for (int i = static_cast<int>(workers_.size()) + 1; i < num_threads(); ++i)
      workers_.emplace_back([this, i, seen] { work(i, seen); });
  }

  void stop_workers() {
    stopping_.store(true);
    wake_workers();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    stopping_.store(false);
  }

  void wake_workers() {
    epoch_.fetch_add(1);
    epoch_.notify_all();
  }

  void work(int thread, std::uint32_t seen) {
    inside_block = true;
    index_of_thread = thread;
    while (true) {
      await(epoch_, [seen](std::uint32_t epoch) { return epoch != seen; });
      seen = epoch_.load();
      if (stopping_.load()) return;
      if (!enter()) continue;
      std::optional<BatchInvariant> inherited;
      if (job_.batch_invariant) inherited.emplace();
      take_blocks(thread);
      if (gate_.fetch_sub(1) == 1) gate_.notify_one();
    }
  }

  bool enter() {
    std::uint32_t gate = gate_.load();
    while ((gate & kOpen) != 0) {
      if (gate_.compare_exchange_weak(gate, gate + 1)) return true;
    }
    return false;
  }

  void deal_blocks() {
    dealt_ = std::min<std::int64_t>(num_threads(), job_.blocks);
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < dealt_; ++i) {
      Share& share = shares_[i];
      share.next.store(first, std::memory_order_relaxed);
      share.end = first += job_.blocks / dealt_ + (i < job_.blocks % dealt_ ? 1 : 0);
    }
  }

  void take_blocks(int thread) noexcept {
    try {
      for (std::int64_t i = 0; i < dealt_; ++i) {
        Share& share = shares_[(thread + i) % dealt_];
        while (share.next.load(std::memory_order_relaxed) < share.end) {
          const std::int64_t index = share.next.fetch_add(1, std::memory_order_relaxed);
          if (index < share.end) job_.run_block(index);
        }
      }
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
      for (Share& share : shares_) share.next.store(share.end, std::memory_order_relaxed);  // nothing is left
    }
  }

  std::mutex mutex_;  // held by the user thread whose job runs
  std::atomic<int> num_threads_;
  std::vector<std::thread> workers_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;                         // written by the thread that sets failed_, read when all have left
  Job job_;                                          // written while the gate is closed and no worker inside
  std::vector<Share> shares_;                        // as job_
  std::int64_t dealt_ = 0;                           // the first shares, which have blocks
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // changes with every job; workers sleep on it
  alignas(64) std::atomic<std::uint32_t> gate_{0};
};

// Before main, since a fork while another thread makes the pool must wait for it.
[[maybe_unused]] const bool registered = platform::at_fork([] { Pool::instance_or_null(); }, nullptr,
                                                           [] {
                                                             if (Pool* const pool = Pool::instance_or_null())
                                                               pool->begin_anew();
                                                           });

}  // namespace

void set_num_threads(int count) {
  check_value(count >= 1 && count <= kMostThreads, "set_num_threads: count must be from 1 to {} but is {}",
              kMostThreads, count);
  check<Error>(!inside_block, "set_num_threads: must not be called inside a parallel_for");
  Pool::instance().resize(count);
}

int detail::thread_index() { return index_of_thread; }

int num_threads() { return Pool::instance().num_threads(); }

void detail::run_blocks(std::int64_t n, std::int64_t block, const BlockBody& body) {
  check_value(block >= 1, "parallel_for: block must be >= 1 but is {}", block);
  const Job job{n, block, n / block + (n % block > 0), &body};
  if (job.blocks > 1 && !inside_block && num_threads() > 1) return Pool::instance().run(job);
  for (std::int64_t index = 0; index < job.blocks; ++index) job.run_block(index);
}

}  // namespace braid
