// Prints a checksum of everything that a step computes: where the output of two machines or builds differs, they part.
#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

/// Prints what ops compute, and the cotangents that their vjps return.
class Checksums : public Probe {
  void recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>& outputs) override {
    for (const Tensor& y : outputs) fmt::print("#{} {} {} {}\n", op.index, op.name, y.shape(), checksum(y));
  }
  void propagated(const RecordedOp& op, std::vector<Tensor>& cotangents) override {
    for (const Tensor& dx : cotangents)
      if (dx.defined()) fmt::print("#{} vjp of {} {} {}\n", op.index, op.name, dx.shape(), checksum(dx));
  }
};

void run() {
  Rng rng(1);
  const nn::Transformer<> model({.vocab = 16, .context = 8, .channels = 16, .layers = 1, .heads = 2}, rng);
  const Tensor tokens = randint(0, 16, {2, 8}, rng), targets = randint(0, 16, {2, 8}, rng);
  Checksums probe;
  const auto step = value_and_grad([&](const auto& m) { return m.loss(tokens, targets); }, &probe);
  fmt::print("gradients {}\n", checksum(nn::to_tensors(step(model).second), {}));
}

int main(int argc, char** argv) {
  return apps::run_main("where_runs_part", "Prints a checksum of everything that a step computes.", argc, argv, run);
}
