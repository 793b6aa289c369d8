#pragma once
#include <utility>

#include <braid/mhc/connections/released/released_connection.h>

namespace braid::mhc {

/// Streams and the map by which the next layer reads them, computed by the connection before.
struct SinglePassStreams {
  Streams x;  ///< [..., n, C]
  Var h_pre;  ///< [n] or [..., n]
};

/// The hyper-connection of DeepSeek-V4.1, arXiv:2609.19969: the parameters and maps of deepseek_v4(), but a layer reads
/// by the H_pre of the connection before, and the first one reads stream 0. The input of a layer is thus known before
/// the streams are: write, read and the products of the maps are one pass over them, forward and backward. The streams
/// are reduced by the last H_pre.
struct SinglePassConnection {
  using Stream = SinglePassStreams;

  ReleasedConnection parameters;  ///< fn, base, scale

  /// Throws ValueError as deepseek_v4() does.
  SinglePassConnection(std::int64_t channels, std::int64_t streams, Rng& rng, const ReleasedSettings& settings = {})
      : parameters(deepseek_v4(channels, streams, rng, settings)) {}

  std::int64_t streams() const { return parameters.streams(); }  ///< their number, n

  /// The input [..., C] of the next layer; x.h_pre becomes the map for the layer after it. Throws ShapeError on other
  /// shapes of x.
  Var read(SinglePassStreams& x) const {
    check_streams("SinglePassConnection", x.x.shape(), streams(), parameters.channels);
    Var u = x.x.read(SinglePassMaps{.maps = parameters.maps.maps(), .h_pre = x.h_pre});
    x.h_pre = x.x.maps().h_pre;
    return u;
  }

  /// The state before the first connection, which reads stream 0.
  SinglePassStreams first(Streams x) const {
    const Tensor stream_0 = eye(streams(), compute_dtype(x.value().dtype())).select(0, 0).clone();
    return {std::move(x), stream_0};
  }

  /// `layer` maps [..., C] to [..., C]; anything callable.
  SinglePassStreams operator()(SinglePassStreams x, auto&& layer) const {
    x.x.write(layer(read(x)));
    return x;
  }
  /// The first connection alone: x [..., n, C] -> [..., n, C].
  Var operator()(const Var& x, auto&& layer) const { return (*this)(first(Streams(x)), layer).x.value(); }

  /// n copies of an embedding [..., C], and stream 0 to read.
  SinglePassStreams open(const Var& embedding) const { return first(parameters.open(embedding)); }
  Var close(const SinglePassStreams& x) const { return read_streams(x.h_pre, x.x.value()); }  ///< [..., C]

  void params(auto&& visit) { parameters.params(visit); }
};

}  // namespace braid::mhc
