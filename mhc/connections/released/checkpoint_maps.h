#pragma once
#include <braid/mhc/ops/mhc_read.h>

namespace braid::mhc {

/// The parameters of dynamic maps as checkpoints of released models hold them: phi transposed, its rows in the order
/// pre n | post n | comb n^2, where comb_ij is the weight of stream i in stream j, the transpose of H_res.
struct CheckpointMaps {
  Var fn = {};     ///< [2 n + m, n C]
  Var base = {};   ///< [2 n + m]
  Var scale = {};  ///< [3], or [2] without mixing
  Mixing mixing;
  double norm_eps, pre_eps, post_eps = 0, post_magnitude = 2;  ///< as in MHCMaps

  /// The same maps with the parameters in the order of the kernels.
  MHCMaps maps() const;

  void params(auto&& visit) {
    visit("fn", fn);
    visit("base", base);
    visit("scale", scale);
  }
};

/// The rows of fn [2 n + n^2, n C] or base [2 n + n^2] with the comb block transposed, and back.
Var comb_transposed(const Var& rows, std::int64_t n);

}  // namespace braid::mhc
