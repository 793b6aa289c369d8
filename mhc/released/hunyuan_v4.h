#pragma once
#include <braid/mhc/released/checkpoint_maps.h>
#include <braid/mhc/streams.h>

namespace braid::mhc {

/// Settings of HunyuanV4Connection.
struct HunyuanV4Settings {
  double post_magnitude = 2;  ///< H_post is so many times a sigmoid
  double hc_eps = 1e-6;       ///< added to H_pre and H_post
  double norm_eps = 1e-6;     ///< of the RMS norm in front of the maps
  ReleasedInit init = ReleasedInit::residual;
  double fn_std = 0;    ///< with ReleasedInit::residual; see ManifoldConstrainedHC's phi_std
  double scale = 0.01;  ///< with ReleasedInit::residual, at the start; see ManifoldConstrainedHC's alpha
  StreamReduction reduction = StreamReduction::mean;
  Path path = default_path();
  std::int64_t keep_every = 1;  ///< on the fused path: see Streams
  DType dtype = DType::f32;
};

/// The hyper-connection of Hunyuan-V4, which reads and writes streams but does not mix them. With rows of
/// w = (x_flat fn^T) / sqrt(mean(x_flat^2) + norm_eps) pre n | post n:
///
///     H_pre = sigmoid(scale_0 w + base) + hc_eps     H_post = post_magnitude sigmoid(scale_1 w + base) + hc_eps
///     x'_o = x_o + H_post_o layer(sum_i H_pre_i x_i)
///
/// A network of copied streams is the residual network to n hc_eps at ReleasedInit::residual and post_magnitude 2.
struct HunyuanV4Connection {
  using Stream = Streams;

  CheckpointMaps maps;    // fn [2 n, n C], base [2 n], scale [2]
  std::int64_t channels;  ///< C, of each stream
  HunyuanV4Settings settings;

  /// Throws ValueError unless channels and streams >= 1.
  HunyuanV4Connection(std::int64_t channels, std::int64_t streams, Rng& rng, const HunyuanV4Settings& settings = {});

  std::int64_t streams() const { return maps.mixing.n(); }  ///< how many there are, n

  /// The input of the next layer, read from x [..., n, C] by the maps. Throws ShapeError on other shapes of x.
  Var read(Streams& x) const;

  /// `layer` maps [..., C] to [..., C]; anything callable.
  Streams operator()(Streams x, auto&& layer) const {
    x.write(layer(read(x)));
    return x;
  }
  Var operator()(const Var& x, auto&& layer) const { return (*this)(Streams(x), layer).value(); }

  Streams open(const Var& embedding) const {
    return Streams(expand_streams(embedding, streams()), settings.keep_every);
  }
  Var close(const Streams& x) const { return reduce_streams(x.value(), settings.reduction); }

  void params(auto&& visit) { maps.params(visit); }
};

}  // namespace braid::mhc
