// Trains over ranks with the bits of one process: mpirun -n 2 build/bin/over_ranks
#include <fmt/format.h>

#include <braid/braid.h>
#include <braid/dist/accumulate.h>
#include <braid/dist/mpi/communicator.h>

#include "../apps/common/run_main.h"

using namespace braid;

void run() {
  dist::MPICommunicator ranks("over_ranks");
  try {
    set_num_threads(std::max(1, num_threads() / ranks.sharing_processors()));
    Rng rng(1);
    const Tensor x = randn({256, 8}, rng), y = sum(x * x, {1}).value();
    ranks.check_same("data", checksum(x) + checksum(y));
    ranks.check_same("instruction set", std::string(name(instruction_set())));

    nn::Sequential model(
        nn::Linear(8, 32, rng), [](const Var& h) { return tanh(h); }, nn::Linear(32, 1, rng));
    nn::AdamW optimizer({.lr = 0.02});
    for (int step = 0; step < 200; ++step) {
      const auto [loss, grads] = dist::accumulate(ranks, 4, model, [&](const auto& m, std::int64_t block) {
        const auto rows = [&](const Tensor& all) { return all.slice(0, 64 * block, 64 * (block + 1)); };
        return mse_loss(reshape(m(rows(x)), {-1}), rows(y));
      });
      optimizer.step(model, grads);
      if (ranks.rank() == 0 && step % 50 == 0) fmt::print("step {}: loss {:.4f}\n", step, loss);
    }
    if (ranks.rank() == 0) fmt::print("weights: {}\n", checksum(nn::to_tensors(model), {}));
  } catch (const std::exception& error) {
    ranks.fail(error.what(), 2);  // ends all ranks with this line
  }
}

int main(int argc, char** argv) {
  return apps::run_main("over_ranks", "Trains over the ranks of mpirun.", argc, argv, run);
}
