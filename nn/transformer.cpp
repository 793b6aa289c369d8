#include <braid/nn/transformer.h>

namespace braid::nn {

const TransformerConfig& checked(const TransformerConfig& config) {
  auto positive = [](const char* setting, std::int64_t value) {
    check_value(value >= 1, "Transformer: {} must be at least 1 but is {}", setting, value);
  };
  positive("vocab", config.vocab);
  positive("context", config.context);
  positive("channels", config.channels);
  positive("layers", config.layers);
  positive("heads", config.heads);
  positive("mlp_ratio", config.mlp_ratio);
  check_value(config.channels % config.heads == 0,
              "Transformer: heads must divide channels but channels is {} and heads is {}", config.channels,
              config.heads);
  return config;
}

}  // namespace braid::nn
