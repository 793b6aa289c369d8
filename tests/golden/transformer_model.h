#pragma once
#include <string>

#include <braid/mhc/connection.h>
#include <braid/nn/transformer.h>

#include <tests/golden/module.h>

namespace braid::golden {

/// `blocks.0.attention.q.weight` -> `blocks.0.attn.wq`: a parameter's path -> its name in the cases.
std::string golden_name(const std::string& path);

/// With what flows in `flow`.
nn::TransformerConfig transformer_config(const RecordedCase& golden, DType flow);

/// Calls `f(model)` with the reference transformer of the case, whose connection is a setting. Its parameters are still
/// to be replaced.
template <class F>
auto with_transformer(const RecordedCase& golden, DType flow, F f) {
  const std::string connection = golden.settings.text("connection");
  const nn::TransformerConfig config = transformer_config(golden, flow);
  Rng rng;
  if (connection == "residual") return f(nn::Transformer<>(config, rng));
  const mhc::ConnectionConfig settings{.kind = mhc::connection_kind(connection),
                                       .streams = streams(golden.settings, "n"),
                                       .sinkhorn_iterations = iterations(golden.settings, "iterations"),
                                       .dtype = compute_dtype(flow)};
  const auto connect = [&](int index) { return mhc::Connection(settings, config.channels, index, rng); };
  return f(nn::Transformer<mhc::Connection>(config, rng, connect));
}

}  // namespace braid::golden
