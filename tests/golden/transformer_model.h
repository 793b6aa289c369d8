#pragma once
#include <string>

#include <braid/nn/transformer.h>

#include <tests/golden/module.h>

namespace braid::golden {

/// `blocks.0.attention.q.weight` -> `blocks.0.attn.wq`: a parameter's path ->
/// its name in the cases.
std::string golden_name(const std::string& path);

nn::TransformerConfig transformer_config(const Case& golden);

/// Calls `f(model)` with the reference transformer of the case, whose
/// connection is a setting. Its parameters are still to be replaced.
template <class F>
auto with_transformer(const Case& golden, F f) {
  const std::string connection = golden.config.text("connection");
  check<FileError>(connection == "residual", "no connection '{}'", connection);
  Rng rng;
  return f(nn::Transformer<>(transformer_config(golden), rng));
}

}  // namespace braid::golden
