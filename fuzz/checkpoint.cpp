// A checkpoint of train_lm: what load_checkpoint accepts, a run continues from.
#include "../examples/train_lm/checkpoint.h"

#include "safetensors_mutator.h"

namespace {

using namespace braid;

/// A run with the settings of the seeds in the corpus, which `train_lm` with these flags wrote.
struct Run {
  train_lm::Config config = [] {
    train_lm::Config c;
    c.training = {.layers = 1, .channels = 4, .heads = 1, .context = 4, .batch = 1, .steps = 4, .warmup = 0};
    c.eval_every = 2;
    return c;
  }();
  examples::Corpus corpus{"abcacbabcabcacbabcabcacbabcabcacbabcabcacbabcabcacbabc", config.training.context};
  examples::Trainer trainer{config.training, corpus};
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Run run;
  return fuzz::accept_or_refuse([&] {
    examples::Trainer trainer = run.trainer;
    trainer.restore(train_lm::load_checkpoint(fuzz::file_of({data, size}, ".safetensors"), run.trainer.state(),
                                              run.config, run.corpus));
    trainer.train_step();
  });
}
