#pragma once
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include <braid/mhc/connection.h>

namespace CLI {
class App;
}

namespace braid::apps {

/// mhc::ConnectionConfig as command-line flags: choices are names.
struct ConnectionOptions {
  std::string kind = "residual";
  std::optional<std::int64_t> streams = {};
  int sinkhorn_iterations = 20;
  std::string mixing = "sinkhorn";
  double phi_std = 0.02, alpha = 0.01;
  bool hc_static = false;
  std::string head = "own";
  bool stream_embedding = false;
  std::string skip_mode = "mhc", skip_constraint = "simplex", skip_init = "identity", skip_projection = "forward";
  double skip_epsilon = 0.1, skip_temperature = 1, scale_init = 0.1;
  std::int64_t max_history = 4, depth_block = 1, fractions = 4, proposals = 1, laurel_rank = 4, keep_every = 1;
  bool detach_history = false, constrained = false;
};

/// Adds a flag for every setting but the kind. The app keeps pointers to `options`.
void add_connection_flags(CLI::App& app, ConnectionOptions& options);

/// Throws ValueError on values out of range and on unknown names; the message lists those that exist.
mhc::ConnectionConfig connection_config(const ConnectionOptions& options);

/// Throws ValueError as connection_config() does, and naming the flag of a setting that is not at its default although
/// none of these kinds of connections has it.
void check_all_apply(const ConnectionOptions& options, std::span<const std::string> kinds);

/// Reads what to_json wrote; missing keys have their defaults. Throws nlohmann::json::exception on a value of another
/// type, ValueError on a count that its flag refuses.
ConnectionOptions connection_options(const nlohmann::json& json);

/// The kind, under the key "connection", and the settings that apply to it.
nlohmann::ordered_json to_json(const ConnectionOptions& options);

}  // namespace braid::apps
