#pragma once
#include <utility>

#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/read_write.h>
#include <braid/mhc/telemetry.h>

namespace braid::mhc {

/// The three maps of a hyper-connection on n streams, one for all tokens or one a token (leading axes).
struct StreamMaps {
  Var h_pre;   // [..., n], what the layer reads
  Var h_post;  // [..., n], where its output goes
  Var h_res;   // [..., n, n], how the streams mix

  /// Whether h_pre and h_post / 2 are sigmoids, which telemetry watches for saturation.
  bool gated = true;
};

/// `out = H_res x + H_post^T layer(H_pre x)`, x [..., n, C]: what all hyper-connections on streams have in common.
/// `layer` maps [..., C] to [..., C]; anything callable.
template <class Layer>
Var connect(const StreamMaps& maps, const Var& x, Layer&& layer, Path path = Path::automatic) {
  if (Telemetry* telemetry = Telemetry::active()) telemetry->record(maps, x);
  if (choose_path(path) == Path::fused) {
    const auto [u, write] = open_layer(maps.h_pre, maps.h_post, maps.h_res, x);
    return write(std::forward<Layer>(layer)(u));
  }
  const Var u = read_streams(maps.h_pre, x, Path::reference);
  return write_streams(maps.h_res, maps.h_post, x, std::forward<Layer>(layer)(u), Path::reference);
}

}  // namespace braid::mhc
