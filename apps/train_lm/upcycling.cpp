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

}  // namespace

void start_from_origin(const Config& config, const apps::Corpus& corpus, apps::Trainer& trainer) {
  const SavedRun& origin = *config.origin;
  const std::string folder = config.init.string();
  if (origin.pretrained)
    check_value(corpus.alphabet().empty(),
                "--init: the model of {} reads tokens: give --tokenizer, or a --text of them that ends in .bin",
                folder);
  else
    check_value(origin.alphabet == corpus.alphabet() && origin.tokenizer_checksum == corpus.tokenizer_checksum(),
                "--init: the model of {} reads other {} than the text has", folder, corpus.vocabulary().unit());
  nn::NamedTensors own = nn::to_tensors(trainer.model()), parameters = origin.parameters;
  if (connections_in(own) != connections_in(parameters))
    std::erase_if(parameters, [](const auto& entry) { return in_connection(entry.first); });
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
