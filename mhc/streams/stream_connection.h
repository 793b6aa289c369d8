#pragma once
#include <braid/mhc/streams/streams.h>

namespace braid::mhc {

/// What all connections on streams share. A connection `Self` derives from it and has `streams()`, the number n of
/// streams, and `Var read(Streams& x) const`, which reads the input of a layer from x [..., n, C] by its maps; or calls
/// of its own.
template <class Self>
struct StreamConnection {
  using Stream = Streams;

  /// The streams after a layer around which the connection is. `layer` maps [..., C] to [..., C]; anything callable.
  Streams operator()(Streams x, auto&& layer) const {
    x.write(layer(self().read(x)));
    return x;
  }
  /// The same for x [..., n, C] -> [..., n, C].
  Var operator()(const Var& x, auto&& layer) const { return (*this)(Streams(x), layer).value(); }

  /// n copies of an embedding [..., C], for the first connection of a network.
  Streams open(const Var& embedding) const {
    return Streams(expand_streams(embedding, self().streams()), self().keep_every());
  }
  /// The streams as one state [..., C], after the last connection.
  Var close(const Streams& x) const { return reduce_streams(x.value(), self().reduction()); }

  std::int64_t keep_every() const { return 1; }                        ///< see Streams
  StreamReduction reduction() const { return StreamReduction::mean; }  ///< what close() does

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace braid::mhc
