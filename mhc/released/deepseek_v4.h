#pragma once
#include <braid/mhc/released/checkpoint_maps.h>
#include <braid/mhc/streams.h>

namespace braid::mhc {

/// Settings of DeepSeekV4Connection.
struct DeepSeekV4Settings {
  int sinkhorn_iterations = 20;  ///< normalizations of rows and columns
  double hc_eps = 1e-6;          ///< added to H_pre, to the first softmax of H_res and to each of its divisors
  double norm_eps = 1e-6;        ///< of the RMS norm in front of the maps (GLM-5-next: 1e-5)
  double post_magnitude = 2;     ///< H_post is so many times a sigmoid
  ReleasedInit init = ReleasedInit::residual;
  double fn_std = 0;    ///< with ReleasedInit::residual; see ManifoldConstrainedHC's phi_std
  double scale = 0.01;  ///< with ReleasedInit::residual, at the start; see ManifoldConstrainedHC's alpha
  StreamReduction reduction = StreamReduction::mean;
  Path path = default_path();
  std::int64_t keep_every = 1;  ///< on the fused path: see Streams
  DType dtype = DType::f32;
};

/// The hyper-connection of DeepSeek-V4 and GLM-5-next: mHC with parameters as their checkpoints hold them. With rows of
/// w = (x_flat fn^T) / sqrt(mean(x_flat^2) + norm_eps) pre n | post n | comb n^2:
///
///     H_pre = sigmoid(scale_0 w + base) + hc_eps     H_post = post_magnitude sigmoid(scale_1 w + base)
///     comb = softmax(scale_2 w + base) + hc_eps, columns and then rows normalized in turn, hc_eps added to every sum
///     x'_o = H_post_o layer(sum_i H_pre_i x_i) + sum_i comb_io x_i
///
/// comb acts transposed: H_res = comb^T, whose columns are normalized first and rows last, as in the paper. A network
/// of copied streams is the residual network to n hc_eps at ReleasedInit::residual. No decay belongs on base and scale.
struct DeepSeekV4Connection {
  using Stream = Streams;

  CheckpointMaps maps;    // fn, base, scale
  std::int64_t channels;  ///< C, of each stream
  DeepSeekV4Settings settings;

  /// Throws ValueError unless channels, streams and sinkhorn_iterations >= 1.
  DeepSeekV4Connection(std::int64_t channels, std::int64_t streams, Rng& rng, const DeepSeekV4Settings& settings = {});

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
