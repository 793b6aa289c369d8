#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <braid/mhc/connection.h>

namespace braid::stability {

enum class Task { mlp_regression, mlp_classification, transformer };
inline constexpr std::size_t kTasks = 3;

/// `deep_mlp_regression`, `deep_mlp_classification`, `deep_transformer`: the tables of a configuration.
std::string_view name(Task task);
/// All names, in the order of the enumerators.
std::span<const std::string_view> task_names();

/// How sublayers are connected: over streams, or over the history of the stream.
enum class Mode {
  residual,
  hc,
  mhc,
  skip_residual,
  skip_hc,
  skip_mhc,
  deepseek_v4,
  hunyuan_v4,
  gated,
  single_pass,
  attention_residual,
  layer_scale,
  rezero,
  laurel,
  manifold,
  mhc_layer,
  frac,
};

/// Those of connections: `residual`, `hc`, ..; but `skip-residual`, `skip-hc` and `skip-mhc`.
std::string_view name(Mode mode);
std::span<const std::string_view> mode_names();

/// The settings of connections that ablations vary. A mode ignores those that do not apply to it.
struct Variant {
  std::int64_t streams = 4;               ///< modes with streams but frac
  std::int64_t sinkhorn_iterations = 20;  ///< mhc, deepseek-v4, single-pass, mhc-layer, manifold
  std::string mixing = "sinkhorn";        ///< mhc
  std::int64_t max_history = 4;           ///< skip-*
  std::string init = "identity";          ///< skip-hc, skip-mhc
  std::string constraint = "simplex";     ///< skip-mhc
};

/// One training run. The configuration of its task has the sizes and the number of steps.
struct RunSettings {
  Task task;
  Mode mode;
  Variant variant;
  double learning_rate;
  std::uint64_t seed;
};

/// Names a run and its file: `deep_mlp_regression.mhc.n4.i20.lr0.003.seed1`. Runs that are the same have the same id.
std::string id(const RunSettings& run);

/// The settings of the variant that apply to the mode: `n4.i20`; empty for residual.
std::string label(Mode mode, const Variant& variant);

mhc::ConnectionConfig connection_config(Mode mode, const Variant& variant);

}  // namespace braid::stability
