#include "settings.h"

#include <array>

#include <fmt/core.h>

namespace braid::stability {
namespace {

constexpr std::array<std::string_view, kTasks> kTaskNames = {"deep_mlp_regression", "deep_mlp_classification",
                                                             "deep_transformer"};
constexpr std::array<std::string_view, 6> kModeNames = {"residual",      "hc",      "mhc",
                                                        "skip-residual", "skip-hc", "skip-mhc"};

/// Sets the streams of mhc apart, which would stay copies forever; see ManifoldConstrainedHC.
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
    case Mode::residual: break;
    case Mode::hc: return fmt::format("n{}", v.streams);
    case Mode::mhc: return fmt::format("n{}.i{}", v.streams, v.sinkhorn_iterations);
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
  switch (mode) {
    case Mode::residual: break;
    case Mode::hc: return {.kind = mhc::ConnectionKind::hc, .streams = v.streams};
    case Mode::mhc:
      return {.kind = mhc::ConnectionKind::mhc,
              .streams = v.streams,
              .sinkhorn_iterations = static_cast<int>(v.sinkhorn_iterations),
              .phi_std = kPhiStd};
    case Mode::skip_residual: return skip_config(mhc::SkipMode::residual, v);
    case Mode::skip_hc: return skip_config(mhc::SkipMode::hc, v);
    case Mode::skip_mhc: return skip_config(mhc::SkipMode::mhc, v);
  }
  return {};
}

}  // namespace braid::stability
