#pragma once
#include <nlohmann/json.hpp>

#include "microscope.h"

namespace braid::look {

/// A number of five digits, or null if it is not finite.
nlohmann::ordered_json rounded(double value);

/// Of an evaluation, as lists over sites, in which each row is a list over the T tokens:
///
///     norm, share      of each stream: |x_i| and |x_i|^2 / sum_j |x_j|^2
///     cosine           of each pair of streams, (0, 1), (0, 2), .., 0 with a stream of zeros
///     h_pre, h_post    of each stream; null where there is no such map
///     h_res            of each pair, row by row
///     read, write      norms of the layer's input and output
///     gain             of the path from a site to each, the mean over the tokens; null for earlier sites
nlohmann::ordered_json measures(const Seen& seen);

}  // namespace braid::look
