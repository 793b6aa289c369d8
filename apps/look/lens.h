#pragma once
#include <nlohmann/json.hpp>

#include "losses.h"

namespace braid::look {

/// The logit lens: what the model's last norm and head predict from each stream before each site, and last from what
/// the head reads of all. `loss` and `likely` are lists over sites, streams and tokens; an element of `likely` has the
/// most likely ids, each followed by its probability.
nlohmann::ordered_json lens(const apps::Model& model, const Text& text, const Seen& seen);

}  // namespace braid::look
