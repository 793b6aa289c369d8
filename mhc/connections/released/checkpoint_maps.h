#pragma once
#include <braid/core/random.h>
#include <braid/mhc/ops/mhc_read.h>

namespace braid::mhc {

/// Where the parameters of a released form start.
enum class ReleasedInit {
  residual,   ///< fn = 0 (or fn_std), H_pre = 1/n, H_post = 1, H_res near the identity: the pre-norm residual network
  published,  ///< fn ~ N(0, 0.02^2), base 0, scale 1, as others train them: streams are averaged at once
};

/// The parameters of dynamic maps as checkpoints of released models hold them: phi transposed, its rows in the order
/// pre n | post n | comb n^2, where comb_ij is the weight of stream i in stream j, the transpose of H_res.
struct CheckpointMaps {
  Var fn = {};     ///< [2 n + m, n C]
  Var base = {};   ///< [2 n + m]
  Var scale = {};  ///< [3], or [2] without mixing
  Mixing mixing;
  double norm_eps, pre_eps, post_eps = 0, post_magnitude = 2;  ///< as in MHCMaps

  /// Sets the parameters for a number of channels; fn_std and scale apply to ReleasedInit::residual. Throws ValueError
  /// that begins with `op` unless channels >= 1 and the eps and fn_std are at least 0.
  void initialize(const char* op, std::int64_t channels, ReleasedInit init, double fn_std, double scale, Rng& rng,
                  DType dtype);

  /// The same maps with the parameters in the order of the kernels.
  MHCMaps maps() const;

  void params(auto&& visit) {
    visit("fn", fn);
    visit("base", base);
    visit("scale", scale);
  }
};

/// The rows of fn [2 n + n^2, n C] or base [2 n + n^2] with the comb block transposed, as H_res has them. Its own
/// inverse.
Var comb_transposed(const Var& rows, std::int64_t n);

}  // namespace braid::mhc
