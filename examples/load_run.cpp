// Loads the model of a run of train_lm, and predicts the next character of a prompt.
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <braid/braid.h>

using namespace braid;
using Model = nn::Transformer<mhc::Connection>;

/// The model of a checkpoint, for the connections `residual` and those whose settings have their defaults.
Model load_run(const SafetensorsFile& file) {
  const auto config = nlohmann::json::parse(file.metadata.at("config"));
  const std::int64_t channels = config.at("channels"), layers = config.at("layers");
  const nn::TransformerConfig sizes{.vocab = file.tensors.at("model.embedding.weight").size(0),
                                    .context = config.at("context"),
                                    .channels = channels,
                                    .layers = static_cast<int>(layers),
                                    .heads = config.at("heads")};
  mhc::ConnectionConfig connection{.kind = mhc::connection_kind(config.at("connection").get<std::string>()),
                                   .sublayers = 2 * layers};
  if (config.contains("streams")) connection.streams = config.at("streams");
  connection.mixing = config.value("mixing", connection.mixing);
  Rng rng;  // of weights that are replaced
  Model model(sizes, rng, [&](int index) { return mhc::Connection(connection, channels, index, rng); });
  nn::NamedTensors parameters;
  for (const auto& [name, tensor] : file.tensors)
    if (name.starts_with("model.")) parameters[name.substr(6)] = tensor;
  nn::from_tensors(model, parameters, "the checkpoint");  // throws for what does not fit
  return model;
}

int main(int argc, char** argv) try {
  if (argc != 3) throw ValueError("give a checkpoint, such as runs/mine/best.safetensors, and a prompt");
  const SafetensorsFile file = load_safetensors(argv[1]);
  check<FileError>(file.metadata.contains("config"), "{}: is no checkpoint of train_lm", argv[1]);
  const Model model = load_run(file);
  const std::string alphabet = file.metadata.at("alphabet"), prompt = argv[2];  // ASCII, a byte per id
  std::vector<std::int32_t> ids;
  for (const char c : prompt) {
    check_value(alphabet.find(c) != std::string::npos, "the model has no character '{}'", c);
    ids.push_back(static_cast<std::int32_t>(alphabet.find(c)));
  }
  nn::KVCache cache = model.make_cache(1);
  const Tensor logits = model.next_logits(Tensor::of<std::int32_t>({1, std::ssize(ids)}, ids), cache);
  fmt::print("{}{}\n", prompt, alphabet[static_cast<std::size_t>(nn::most_likely(logits))]);
} catch (const std::exception& error) {
  fmt::print(stderr, "load_run: {}\n", error.what());
  return 2;
}
