#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

namespace braid {

/// Sets the number of threads of parallel_for, including the calling one.
/// Throws ValueError unless count is from 1 to 1024, Error inside a block of a parallel_for on several threads.
void set_num_threads(int count);

/// The number of threads of parallel_for; unless set, the environment's BRAID_NUM_THREADS or the number of hardware
/// threads. Throws ValueError if BRAID_NUM_THREADS is not from 1 to 1024.
int num_threads();

namespace detail {

using BlockBody = std::function<void(std::int64_t begin, std::int64_t end)>;

void run_blocks(std::int64_t n, std::int64_t block, const BlockBody& body);

/// The number of the calling thread in parallel_for, below num_threads(): 0 for every thread that is not a worker.
int thread_index();

/// Calls f(i) for each i in [0, n), on all threads, in blocks of about `work` operations, of which f does `cost`.
void parallel_for_each(std::int64_t n, std::int64_t cost, std::int64_t work, auto f) {
  const std::int64_t block = std::max<std::int64_t>(1, work / std::max<std::int64_t>(1, cost));
  run_blocks(n, block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace detail

/// Calls f(begin, end) for consecutive blocks of at most `block` indices that cover [0, n); blocks run on all threads.
/// The blocks depend on n and block only, never on the number of threads. Returns when all blocks are done. The first
/// exception of f is rethrown and skips the blocks not yet begun. A nested parallel_for runs on the thread of its
/// block; calls from several user threads run one after the other. A process may fork outside of a block; the child
/// starts its own threads. Throws ValueError unless block >= 1.
template <class F>
void parallel_for(std::int64_t n, std::int64_t block, F&& f) {
  detail::run_blocks(n, block, std::ref(f));  // borrowed: no allocation
}

}  // namespace braid
