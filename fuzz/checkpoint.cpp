// A checkpoint of train_lm: a run continues from every one that load_checkpoint accepts. Inputs get a correct checksum
// first, since otherwise only the seeds would pass it.
#include <braid/core/files/checksum.h>
#include <braid/core/files/safetensors.h>

#include "../apps/train_lm/checkpoint.h"

#include "safetensors_mutator.h"

namespace {

using namespace braid;

/// A run with the settings of the seeds in the corpus, which `train_lm` with these flags wrote.
struct Run {
  train_lm::Config config = [] {
    train_lm::Config c;
    c.training = {.layers = 1, .channels = 4, .heads = 1, .context = 4, .batch = 1, .steps = 4, .warmup = 0};
    c.eval_every = 2;
    c.allow_other_processor = true;
    return c;
  }();
  apps::Corpus corpus{"abcacbabcabcacbabcabcacbabcabcacbabcabcacbabcabcacbabc", config.training.context};
  apps::Trainer trainer{config.training, corpus};
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Run run;
  return fuzz::accept_or_refuse([&] {
    SafetensorsFile file = load_safetensors(fuzz::file_of({data, size}, ".safetensors"));
    file.metadata.erase("checksum");
    file.metadata["checksum"] = checksum(file.tensors, file.metadata);
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("{}", platform::process_id());
    std::filesystem::create_directory(folder);
    save_safetensors(folder / "checkpoint.safetensors", file.tensors, file.metadata);
    apps::Trainer trainer = run.trainer;
    trainer.restore(*train_lm::load_checkpoint(folder, run.trainer.state(), run.config, run.corpus));
    trainer.train_step();
  });
}
