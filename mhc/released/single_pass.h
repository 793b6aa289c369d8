#pragma once
#include <braid/mhc/released/deepseek_v4.h>

namespace braid::mhc {

/// Streams and the map by which the next layer reads them, which the connection before has made.
struct SinglePassStreams {
  Streams x;  ///< [..., n, C]
  Var h_pre;  ///< [n] or [..., n]
};

/// The hyper-connection of DeepSeek-V4.1, arXiv:2609.19969: parameters and maps of DeepSeekV4Connection, but a layer
/// reads by the H_pre of the connection before, and the first one reads stream 0. What a layer reads is thus known
/// before the streams are: write, read and the products of the maps are one pass over them, forward and backward. The
/// streams are reduced by the last H_pre.
struct SinglePassConnection {
  using Stream = SinglePassStreams;

  DeepSeekV4Connection parameters;  ///< fn, base, scale

  /// Throws ValueError unless channels, streams and sinkhorn_iterations >= 1.
  SinglePassConnection(std::int64_t channels, std::int64_t streams, Rng& rng, const DeepSeekV4Settings& settings = {})
      : parameters(channels, streams, rng, settings) {}

  std::int64_t streams() const { return parameters.streams(); }  ///< how many there are, n

  /// The input of the next layer; leaves the map for the one after. Throws ShapeError on other shapes of x.
  Var read(SinglePassStreams& x) const;

  /// Streams as the first connection finds them: it reads stream 0.
  SinglePassStreams first(Streams x) const;

  /// `layer` maps [..., C] to [..., C]; anything callable.
  SinglePassStreams operator()(SinglePassStreams x, auto&& layer) const {
    x.x.write(layer(read(x)));
    return x;
  }
  /// The same on x [..., n, C] as the first connection.
  Var operator()(const Var& x, auto&& layer) const { return (*this)(first(Streams(x)), layer).x.value(); }

  SinglePassStreams open(const Var& embedding) const { return first(parameters.open(embedding)); }
  Var close(const SinglePassStreams& x) const { return read_streams(x.h_pre, x.x.value(), parameters.settings.path); }

  void params(auto&& visit) { parameters.params(visit); }
};

}  // namespace braid::mhc
