#include "settings.h"

#include <array>

#include <fmt/format.h>

namespace braid::stability {
namespace {

constexpr std::array<std::string_view, kTasks> kTaskNames = {"deep_mlp_regression", "deep_mlp_classification",
                                                             "deep_transformer"};
constexpr auto kModeNames = std::to_array<std::string_view>(
    {"residual", "hc", "mhc", "skip-residual", "skip-hc", "skip-mhc", "deepseek-v4", "hunyuan-v4", "gated",
     "single-pass", "attention-residual", "layer-scale", "rezero", "laurel", "manifold", "mhc-layer", "frac"});

/// Makes the streams of mhc differ; otherwise they stay copies of each other; see ManifoldConstrainedHC.
constexpr double kPhiStd = 0.02;

mhc::ConnectionConfig skip_config(mhc::SkipMode mode, const Variant& v) {
  return {.kind = mhc::ConnectionKind::skip,
          .skip = {.mode = mode,
                   .constraint = mhc::make_constraint(v.constraint),
                   .init = mhc::skip_init(v.init),
                   .max_history = v.max_history}};
}

}  // namespace

std::string_view name(Task task) { return kTaskNames[static_cast<std::size_t>(task)]; }
std::span<const std::string_view> task_names() { return kTaskNames; }

std::string_view name(Mode mode) { return kModeNames[static_cast<std::size_t>(mode)]; }
std::span<const std::string_view> mode_names() { return kModeNames; }

std::string label(Mode mode, const Variant& v) {
  switch (mode) {
    case Mode::residual:
    case Mode::attention_residual:
    case Mode::layer_scale:
    case Mode::rezero:
    case Mode::laurel:
    case Mode::frac: break;
    case Mode::hc:
    case Mode::hunyuan_v4:
    case Mode::gated: return fmt::format("n{}", v.streams);
    case Mode::mhc:
      if (v.mixing != "sinkhorn") return fmt::format("n{}.{}", v.streams, v.mixing);
      [[fallthrough]];
    case Mode::deepseek_v4:
    case Mode::single_pass:
    case Mode::mhc_layer: return fmt::format("n{}.i{}", v.streams, v.sinkhorn_iterations);
    case Mode::manifold: return fmt::format("i{}", v.sinkhorn_iterations);
    case Mode::skip_residual: return fmt::format("k{}", v.max_history);
    case Mode::skip_hc: return fmt::format("k{}.{}", v.max_history, v.init);
    case Mode::skip_mhc: return fmt::format("k{}.{}.{}", v.max_history, v.init, v.constraint);
  }
  return "";
}

std::string id(const RunSettings& run) {
  const std::string variant = label(run.mode, run.variant);
  return fmt::format("{}.{}{}{}.lr{}.seed{}", name(run.task), name(run.mode), variant.empty() ? "" : ".", variant,
                     run.learning_rate, run.seed);
}

mhc::ConnectionConfig connection_config(Mode mode, const Variant& v) {
  if (mode == Mode::skip_residual) return skip_config(mhc::SkipMode::residual, v);
  if (mode == Mode::skip_hc) return skip_config(mhc::SkipMode::hc, v);
  if (mode == Mode::skip_mhc) return skip_config(mhc::SkipMode::mhc, v);
  mhc::ConnectionConfig config{.kind = mhc::connection_kind(name(mode)),
                               .sinkhorn_iterations = static_cast<int>(v.sinkhorn_iterations),
                               .mixing = v.mixing,
                               .phi_std = kPhiStd};
  if (mode != Mode::manifold && mode != Mode::frac) config.streams = v.streams;
  return config;
}

}  // namespace braid::stability
