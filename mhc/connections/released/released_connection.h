#pragma once
#include <braid/core/random.h>
#include <braid/mhc/connections/released/checkpoint_maps.h>
#include <braid/mhc/streams/stream_connection.h>

namespace braid::mhc {

/// Where the parameters of a released form start.
enum class ReleasedInit {
  residual,   ///< fn = 0 (or fn_std), H_pre = 1/n, H_post = 1, H_res near the identity: the pre-norm residual network
  published,  ///< fn ~ N(0, 0.02^2), base 0, scale 1, as others train them: streams are averaged at once
};

/// Settings of deepseek_v4(), hunyuan_v4() and SinglePassConnection.
struct ReleasedSettings {
  int sinkhorn_iterations = 20;  ///< of rows and columns; hunyuan_v4() has no such normalization
  double hc_eps = 1e-6;          ///< added as the formulas below say
  double norm_eps = 1e-6;        ///< of the RMS norm in front of the maps (GLM-5-next: 1e-5)
  double post_magnitude = 2;     ///< the factor of H_post's sigmoid
  ReleasedInit init = ReleasedInit::residual;
  double fn_std = 0;    ///< with ReleasedInit::residual; see ManifoldConstrainedHC's phi_std
  double scale = 0.01;  ///< with ReleasedInit::residual, at the start; see ManifoldConstrainedHC's alpha
  StreamReduction reduction = StreamReduction::mean;
  std::int64_t keep_every = 1;  ///< see Streams
  DType dtype = DType::f32;
};

/// A hyper-connection with dynamic maps whose parameters are as checkpoints of released models hold them:
/// `out = H_res x + H_post^T layer(H_pre x)`. deepseek_v4() and hunyuan_v4() make one. Do not decay base and scale.
struct ReleasedConnection : StreamConnection<ReleasedConnection> {
  CheckpointMaps maps;    ///< fn, base, scale
  std::int64_t channels;  ///< C, of each stream
  ReleasedSettings settings;

  /// Sets the maps' parameters as the settings say. Throws ValueError that begins with `op` unless channels and
  /// keep_every >= 1 and the eps and fn_std are at least 0.
  ReleasedConnection(const char* op, CheckpointMaps maps, std::int64_t channels, Rng& rng,
                     const ReleasedSettings& settings);

  std::int64_t streams() const { return maps.mixing.n(); }          ///< their number, n
  std::int64_t keep_every() const { return settings.keep_every; }   ///< see Streams
  StreamReduction reduction() const { return settings.reduction; }  ///< what close() does

  /// The input [..., C] of the next layer, read from x [..., n, C] by the maps. Throws ShapeError on other shapes of x.
  Var read(Streams& x) const;

  void params(auto&& visit) { maps.params(visit); }
};

/// The hyper-connection of DeepSeek-V4 and GLM-5-next: mHC. With rows of
/// w = (x_flat fn^T) / sqrt(mean(x_flat^2) + norm_eps) pre n | post n | comb n^2:
///
///     H_pre = sigmoid(scale_0 w + base) + hc_eps     H_post = post_magnitude sigmoid(scale_1 w + base)
///     comb = softmax(scale_2 w + base) + hc_eps, columns and then rows normalized in turn, hc_eps added to every sum
///     x'_o = H_post_o layer(sum_i H_pre_i x_i) + sum_i comb_io x_i
///
/// comb acts transposed: H_res = comb^T, whose columns are normalized first and rows last, as in the paper. A network
/// of copied streams is the residual network to n hc_eps at ReleasedInit::residual. Throws ValueError unless channels,
/// streams, sinkhorn_iterations and keep_every >= 1.
ReleasedConnection deepseek_v4(std::int64_t channels, std::int64_t streams, Rng& rng,
                               const ReleasedSettings& settings = {});

/// The hyper-connection of Hunyuan-V4, which reads and writes streams but does not mix them. With rows of
/// w = (x_flat fn^T) / sqrt(mean(x_flat^2) + norm_eps) pre n | post n:
///
///     H_pre = sigmoid(scale_0 w + base) + hc_eps     H_post = post_magnitude sigmoid(scale_1 w + base) + hc_eps
///     x'_o = x_o + H_post_o layer(sum_i H_pre_i x_i)
///
/// fn is [2 n, n C], base [2 n], scale [2]. A network of copied streams is the residual network to n hc_eps at
/// ReleasedInit::residual and post_magnitude 2. Throws ValueError unless channels, streams and keep_every >= 1.
ReleasedConnection hunyuan_v4(std::int64_t channels, std::int64_t streams, Rng& rng,
                              const ReleasedSettings& settings = {});

}  // namespace braid::mhc
