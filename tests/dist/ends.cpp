// Ranks that end in a given way: ends WAY [RANK ..]. Ranks that are not listed continue to work. With `works` no rank
// ends; with `busy` rank 0 sleeps and rank 1 spins for longer than the others' patience, twice, and then all leave.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include <braid/autograd/ops.h>
#include <braid/dist/accumulate.h>
#include <braid/dist/mpi/communicator.h>

#include "../../apps/platform/signals.h"

namespace {

using namespace braid;

void work(dist::Communicator& ranks) {
  const Var model(ones({200, 300}));
  dist::accumulate(ranks, ranks.size(), model, [](const Var& m, std::int64_t) { return mean(m * m); });
}

void spin(std::chrono::seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Rank 0 sleeps and rank 1 spins before the call, in which the others wait for them without a busy processor.
void call_late(dist::Communicator& ranks, const auto& call) {
  constexpr std::chrono::seconds kTime(4);
  const std::clock_t before = std::clock();
  if (ranks.rank() == 0) std::this_thread::sleep_for(kTime);
  if (ranks.rank() == 1) spin(kTime);
  call();
  if (ranks.rank() > 1 && std::clock() - before > 2 * CLOCKS_PER_SEC) fmt::print("busy\n"), std::fflush(stdout);
}

void end(std::string_view way, dist::Communicator& ranks) {
  if (way == "killed") raise(SIGKILL);
  if (way == "exits") _exit(0);
  if (way == "crashes") std::abort();
  if (way == "fails") ranks.fail("step 7: the loss\nis not finite", 3);
  if (way == "throws") throw std::runtime_error("on its way");
  if (way == "no-memory") throw std::bad_alloc();
}

int run(int argc, char** argv) {
  const std::string_view way = argv[1];
  const bool leaves = way == "none" || way == "busy";
  const bool is_short = way == "works" || way == "busy";
  // As in train_lm: after a killed rank, mpirun sends SIGTERM to the others, maybe before they have written their line.
  const platform::HeldSignals held(platform::HeldSignals::Which::interruptions);
  dist::MPICommunicator ranks("ends", std::chrono::seconds(is_short ? 2 : 60));
  bool ends = false;
  for (int i = 2; i < argc; ++i) ends = ends || std::atoi(argv[i]) == ranks.rank();
  for (int step = 0; step < 3; ++step) work(ranks);
  if (way == "works" && ranks.rank() == 0) fmt::print("working\n"), std::fflush(stdout);
  if (way == "busy") call_late(ranks, [&] { ranks.any(false); }), call_late(ranks, [&] { work(ranks); });
  if (ends && way == "unwinds") throw std::runtime_error("on its way");
  try {
    if (ends) end(way, ranks);
    // The others wait for this one in the middle of a sum.
    for (int step = 0; !leaves && step < 1000000; ++step) work(ranks);
  } catch (const std::exception& error) {
    ranks.fail(error.what(), 2);
  }
  if (ranks.rank() == 0) fmt::print("done\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception&) {
  return 1;  // not reached: the communicator ends the process
}
