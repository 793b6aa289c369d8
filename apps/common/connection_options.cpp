#include "connection_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <braid/core/utf8.h>

#include "json_lines.h"

namespace braid::apps {
namespace {

using Kind = mhc::ConnectionKind;

std::int64_t streams_of(const ConnectionOptions& o, Kind kind) {
  return o.streams.value_or(mhc::default_streams(kind));
}

/// The largest value of the settings that are counts, of which the least is 1.
std::int64_t most(std::string_view key) {
  if (key == "sinkhorn_iterations") return 1000;
  if (key == "max_history" || key == "depth_block" || key == "keep_every") return 1024;
  if (key == "laurel_rank") return 4096;
  return 64;  // streams, fractions, proposals
}

CLI::Range up_to(std::string_view key) { return {std::int64_t{1}, most(key)}; }

void add_history_flags(CLI::App& app, ConnectionOptions& o) {
  const auto choice = [&app](const char* flag, std::string& value, const char* help) {
    app.add_option(flag, value, help)->capture_default_str();
  };
  const auto number = [&app](const char* flag, double& value, const char* help) {
    app.add_option(flag, value, help)->capture_default_str();
  };
  choice("--skip-mode", o.skip_mode, "skip: residual, hc (free weights) or mhc (constrained weights)");
  choice("--skip-constraint", o.skip_constraint, "skip: simplex, identity or doubly_stochastic");
  choice("--skip-init", o.skip_init, "skip: identity, uniform or zeros");
  choice("--skip-projection", o.skip_projection, "skip: forward, post_step or none");
  number("--skip-epsilon", o.skip_epsilon, "skip: least weight of the current state under constraint identity");
  number("--skip-temperature", o.skip_temperature, "skip: divisor of the logits");
  app.add_option("--max-history", o.max_history, "skip: number of states that are mixed")
      ->check(up_to("max_history"))
      ->capture_default_str();
  app.add_flag("--detach-history", o.detach_history, "skip: no gradient through earlier states");
  app.add_option("--depth-block", o.depth_block, "attention-residual: sublayers whose outputs are summed to one source")
      ->check(up_to("depth_block"))
      ->capture_default_str();
}

/// All settings but the kind, by the names of their flags, in the order of config.json.
nlohmann::ordered_json all_settings(const ConnectionOptions& o) {
  return {{"skip_mode", o.skip_mode},
          {"skip_constraint", o.skip_constraint},
          {"skip_init", o.skip_init},
          {"skip_projection", o.skip_projection},
          {"skip_epsilon", o.skip_epsilon},
          {"skip_temperature", o.skip_temperature},
          {"max_history", o.max_history},
          {"detach_history", o.detach_history},
          {"depth_block", o.depth_block},
          {"scale_init", o.scale_init},
          {"laurel_rank", o.laurel_rank},
          {"streams", streams_of(o, mhc::connection_kind(o.kind))},
          {"hc_static", o.hc_static},
          {"mixing", o.mixing},
          {"fractions", o.fractions},
          {"proposals", o.proposals},
          {"constrained", o.constrained},
          {"phi_std", o.phi_std},
          {"alpha", o.alpha},
          {"sinkhorn_iterations", o.sinkhorn_iterations},
          {"keep_every", o.keep_every},
          {"head", o.head},
          {"stream_embedding", o.stream_embedding}};
}

/// Whether connections of this kind have the setting.
bool applies(std::string_view key, Kind kind) {
  const auto is_one_of = [&](std::initializer_list<Kind> kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
  };
  if (key == "depth_block") return kind == Kind::attention_residual;
  if (key == "scale_init") return kind == Kind::layer_scale;
  if (key == "laurel_rank") return kind == Kind::laurel;
  if (key == "hc_static") return kind == Kind::hc;
  if (key == "mixing") return kind == Kind::mhc;
  if (key == "fractions" || key == "proposals" || key == "constrained") return kind == Kind::frac;
  if (key == "keep_every") return is_one_of({Kind::mhc, Kind::deepseek_v4, Kind::hunyuan_v4, Kind::single_pass});
  if (key == "phi_std" || key == "alpha") return kind == Kind::frac || applies("keep_every", kind);
  if (key == "sinkhorn_iterations")
    return is_one_of({Kind::mhc, Kind::manifold, Kind::mhc_layer, Kind::deepseek_v4, Kind::single_pass, Kind::frac});
  const bool has_streams =
      !is_one_of({Kind::residual, Kind::skip, Kind::attention_residual, Kind::layer_scale, Kind::rezero, Kind::laurel});
  if (key == "streams") return has_streams;
  if (key == "head" || key == "stream_embedding") return has_streams && kind != Kind::manifold;
  return kind == Kind::skip;
}

}  // namespace

void add_connection_flags(CLI::App& app, ConnectionOptions& o) {
  app.add_option("--streams", o.streams, "residual streams (4; frac: 1); manifold: channel groups (2)")
      ->check(up_to("streams"));
  app.add_option("--sinkhorn-iterations", o.sinkhorn_iterations,
                 "mhc, manifold, mhc-layer, deepseek-v4, single-pass, frac --constrained: normalizations")
      ->check(up_to("sinkhorn_iterations"))
      ->capture_default_str();
  app.add_option("--mixing", o.mixing,
                 fmt::format("mhc: how H_res is computed from its logits: {}; see Mixings in the manual",
                             fmt::join(mhc::mixing_names(), ", ")))
      ->capture_default_str();
  app.add_option(
         "--phi-std", o.phi_std,
         "mhc, deepseek-v4, hunyuan-v4, single-pass, frac: initial scale of the dynamic maps; 0 keeps streams equal")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--alpha", o.alpha, "the same: initial share of the dynamic maps; 0 starts as a residual network")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--keep-every", o.keep_every,
                 "mhc, deepseek-v4, hunyuan-v4, single-pass: sublayers of whose streams one keeps its own for the "
                 "backward pass, which recomputes the others: less memory, same bits")
      ->check(up_to("keep_every"))
      ->capture_default_str();
  app.add_option("--head", o.head,
                 "how streams become one state: own, mean, sum, weighted (DeepSeek-V4), softmax, gated (Qwen4-exp) or "
                 "attention")
      ->capture_default_str();
  app.add_flag("--stream-embedding", o.stream_embedding, "adds a learned vector to each stream at the start");
  app.add_flag("--hc-static", o.hc_static, "hc: maps that do not depend on the token");
  const auto count = [&app](const char* flag, std::int64_t& value, const char* help) {
    app.add_option(flag, value, help)->check(up_to(flag + 2))->capture_default_str();
  };
  count("--fractions", o.fractions, "frac: parts of the channels that are mixed; must divide them");
  count("--proposals", o.proposals, "frac: sets of maps whose mean is taken; they differ with --phi-std > 0");
  app.add_flag("--constrained", o.constrained, "frac: doubly stochastic maps, as mhc has them");
  app.add_option("--scale-init", o.scale_init, "layer-scale: the factor of each channel at the start")
      ->capture_default_str();
  app.add_option("--laurel-rank", o.laurel_rank, "laurel: rank of the map that is added to the state")
      ->check(up_to("laurel_rank"))
      ->capture_default_str();
  add_history_flags(app, o);
}

mhc::ConnectionConfig connection_config(const ConnectionOptions& o) {
  const Kind kind = mhc::connection_kind(o.kind);
  if (kind == Kind::mhc) mhc::Mixing(o.mixing, streams_of(o, kind));  // or throws
  return {.kind = kind,
          .streams = streams_of(o, kind),
          .sinkhorn_iterations = o.sinkhorn_iterations,
          .mixing = o.mixing,
          .phi_std = o.phi_std,
          .alpha = o.alpha,
          .dynamic = !o.hc_static,
          .skip = {.mode = mhc::skip_mode(o.skip_mode),
                   .constraint = mhc::make_constraint(o.skip_constraint,
                                                      {.epsilon = o.skip_epsilon, .temperature = o.skip_temperature}),
                   .init = mhc::skip_init(o.skip_init),
                   .projection = mhc::skip_projection(o.skip_projection),
                   .max_history = o.max_history,
                   .detach_history = o.detach_history},
          .depth_block = o.depth_block,
          .fractions = o.fractions,
          .proposals = o.proposals,
          .constrained = o.constrained,
          .scale_init = o.scale_init,
          .laurel_rank = o.laurel_rank,
          .head = mhc::stream_head(o.head),
          .stream_embedding = o.stream_embedding,
          .keep_every = o.keep_every};
}

void check_all_apply(const ConnectionOptions& o, std::span<const std::string> kinds) {
  connection_config(o);
  const nlohmann::ordered_json settings = all_settings(o), usual = all_settings({.kind = o.kind});
  for (const auto& [key, value] : settings.items()) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    const auto has = [&](const std::string& kind) { return applies(key, mhc::connection_kind(kind)); };
    check_value(value == usual[key] || std::ranges::any_of(kinds, has), "{}: has no effect with connection {}", flag,
                fmt::join(kinds, ", "));
  }
}

nlohmann::ordered_json to_json(const ConnectionOptions& o) {
  nlohmann::ordered_json json{{"connection", o.kind}};
  const nlohmann::ordered_json settings = all_settings(o);
  for (const auto& [key, value] : settings.items())
    if (applies(key, mhc::connection_kind(o.kind))) json[key] = value;
  return json;
}

ConnectionOptions connection_options(const nlohmann::json& json) {
  ConnectionOptions o;
  const auto read = [&](const char* key, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if (!json.contains(key)) return;
    const nlohmann::json& value = json.at(key);
    if constexpr (std::is_integral_v<Field> && !std::is_same_v<Field, bool>) {
      const auto given = integer_of(value);
      check_value(given && *given >= 1 && *given <= most(key), "'{}' must be an integer from 1 to {} but is {}", key,
                  most(key), shortened(value.dump()));
    }
    field = value.get<Field>();
  };
  std::int64_t streams = 0;
  read("connection", o.kind);
  read("streams", streams);
  if (json.contains("streams")) o.streams = streams;
  read("sinkhorn_iterations", o.sinkhorn_iterations);
  read("mixing", o.mixing);
  read("phi_std", o.phi_std);
  read("alpha", o.alpha);
  read("hc_static", o.hc_static);
  read("head", o.head);
  read("stream_embedding", o.stream_embedding);
  read("skip_mode", o.skip_mode);
  read("skip_constraint", o.skip_constraint);
  read("skip_init", o.skip_init);
  read("skip_projection", o.skip_projection);
  read("skip_epsilon", o.skip_epsilon);
  read("skip_temperature", o.skip_temperature);
  read("max_history", o.max_history);
  read("detach_history", o.detach_history);
  read("depth_block", o.depth_block);
  read("fractions", o.fractions);
  read("proposals", o.proposals);
  read("constrained", o.constrained);
  read("scale_init", o.scale_init);
  read("laurel_rank", o.laurel_rank);
  read("keep_every", o.keep_every);
  return o;
}

}  // namespace braid::apps
