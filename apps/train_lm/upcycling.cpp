#include "upcycling.h"

#include <map>

#include <braid/nn/lora.h>
#include <braid/nn/saving.h>

namespace braid::train_lm {
namespace {

using apps::in_connection;

std::map<std::string, Shape> connections_in(const nn::NamedTensors& parameters) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : parameters)
    if (in_connection(name)) shapes.emplace(name, tensor.shape());
  return shapes;
}

/// The settings from which the maps of --init once started, in place of those that now have no effect. A run that is
/// resumed keeps its own, which check_same_run() compares.
void adopt_initial_settings(Config& config) {
  apps::ConnectionOptions& mine = config.training.connection;
  const apps::ConnectionOptions& theirs = config.origin->training.connection;
  const auto adopt = [&](const char* flag, auto& value, const auto& its) {
    const bool given = config.initial_flags.contains(flag);
    check_value(!given || config.resume || value == its,
                "{}: has no effect, since --init brings trained maps, which started with {}", flag, its);
    if (!given) value = its;
  };
  adopt("--alpha", mine.alpha, theirs.alpha);
  adopt("--phi-std", mine.phi_std, theirs.phi_std);
  adopt("--scale-init", mine.scale_init, theirs.scale_init);
  adopt("--skip-init", mine.skip_init, theirs.skip_init);
}

}  // namespace

apps::Corpus read_corpus(const Config& config) {
  return apps::read_corpus(config.text, config.tokenizer, config.training.context,
                           config.origin ? config.origin->alphabet : "");
}

void start_from_origin(Config& config, const apps::Corpus& corpus, apps::Trainer& trainer) {
  const SavedRun& origin = *config.origin;
  const std::string folder = config.init.string();
  if (origin.pretrained)
    check_value(corpus.alphabet().empty(),
                "--init: the model of {} reads tokens: give --tokenizer, or a --text of them that ends in .bin",
                folder);
  else
    check_value(origin.alphabet == corpus.alphabet() && origin.tokenizer_checksum == corpus.tokenizer_checksum(),
                "--init: the model of {} does not read the {} of the text", folder, corpus.vocabulary().unit());
  nn::NamedTensors own = nn::to_tensors(trainer.model()), parameters = origin.parameters;
  const std::map<std::string, Shape> connections = connections_in(own);
  const apps::ConnectionOptions &mine = config.training.connection, &theirs = origin.training.connection;
  const bool same_kind = mine.kind == theirs.kind && mine.mixing == theirs.mixing;  // others may have the same shapes
  if (!same_kind || connections != connections_in(parameters))
    std::erase_if(parameters, [](const auto& entry) { return in_connection(entry.first); });
  else if (!connections.empty())
    adopt_initial_settings(config);
  std::erase_if(own, [](const auto& entry) { return !in_connection(entry.first) && !nn::in_lora(entry.first); });
  parameters.merge(own);  // what the run has, and the origin has not
  nn::from_tensors(trainer.state().model, parameters, "--init: " + folder);
}

double held_out_of_origin(const Config& config, const apps::Corpus& corpus) {
  apps::TrainerSettings settings = config.training;
  settings.connection = config.origin->training.connection;
  settings.trained = apps::Trained::all;
  settings.lora = config.origin->training.lora;
  apps::Trainer origin(settings, corpus);
  nn::from_tensors(origin.state().model, config.origin->parameters, "--init: " + config.init.string());
  return origin.evaluate();
}

}  // namespace braid::train_lm
