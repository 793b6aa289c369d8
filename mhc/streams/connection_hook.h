#pragma once
#include <functional>

#include <braid/core/scope.h>
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// A scope around every connection that this thread evaluates while it is alive: a class that derives from it sees and
/// may replace the streams, the maps, and what layers read and write. By itself it changes no bit. Only the newest one
/// is called; without one, a connection pays for reading a thread-local pointer. A checkpoint() whose function runs
/// again without the hook that changed its result throws Error. To keep every H_res [.., n, n], override record() by
/// `h_res.push_back(maps.h_res.value())`; derived from Telemetry, to have both, also call `Telemetry::record(maps, x)`.
class ConnectionHook : public CollectingScope<ConnectionHook> {
 public:
  using Read = std::function<LayerRead(StreamState&)>;  ///< the connection's own read

  virtual ~ConnectionHook() = default;

  /// In place of a connection's read. Streams are replaced after `x.settle()`, in x.last.x; the layer's input in the
  /// result of `read(x)`; maps, on constants, by read_maps(StreamMaps, x) after it. Heads that read have no h_post.
  virtual LayerRead read(StreamState& x, const Read& read) {
    LayerRead done = read(x);
    if (done.maps.h_post.value().defined()) record(done.maps, done.x);
    return done;
  }
  /// In place of a layer's output f [..., C] on its way to the streams, [..., C].
  virtual Var write(const Var& f) { return f; }
  /// Told of the maps of each connection and of its input x [..., n, C]. Of a connection that does not read by
  /// Streams, such as MHCSkip and FracConnection, a hook is shown nothing else.
  virtual void record(const StreamMaps&, const Var&) {}
};

}  // namespace braid::mhc
