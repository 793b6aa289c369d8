#include <braid/mhc/streams.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/mhc/telemetry.h>

namespace braid::mhc {

Streams::Streams(Var x, std::int64_t keep_every)
    : last_{.u = {}, .maps = {}, .x = std::move(x)}, keep_every_(keep_every) {
  detail::check_streams("Streams", last_.x);
  check_value(keep_every >= 1, "Streams: keep_every must be >= 1 but is {}", keep_every);
}

Var Streams::value() const {
  if (!reading()) return last_.x;
  check<Error>(owed(), "Streams: read() must be followed by write()");
  const StreamMaps& maps = last_.maps;
  return path_ == Path::fused ? detail::write_deferred(last_, f_)
                              : write_streams(maps.h_res, maps.h_post, last_.x, f_, path_);
}

const Var& Streams::settle() {
  if (reading()) last_ = {.u = {}, .maps = {}, .x = value()};
  f_ = Var();
  return last_.x;
}

void Streams::add(const Var& each) { last_.x = settle() + each; }

Var Streams::read(const StreamMaps& maps, Path path) {
  const Var& x = settle();
  return hold(path == Path::fused ? detail::read_deferring_write(maps, x)
                                  : detail::LayerRead{read_streams(maps.h_pre, x, path), maps, x},
              path);
}

Var Streams::read(const GatedMaps& maps) { return hold(detail::gated_read(maps, settle()), maps.path); }

Var Streams::read(const HyperMaps& maps) { return hold(detail::hyper_read(maps, settle()), Path::fused); }

Var Streams::read(const MHCMaps& maps, Path path) { return hold(read_by(maps, {}, path), path, !maps.reads_only); }

Streams::SinglePass Streams::read(const MHCMaps& maps, const Var& pre, Path path) {
  detail::LayerRead read = read_by(maps, pre, path);
  const Var h_pre = read.maps.h_pre;
  return {hold(std::move(read), path), h_pre};
}

detail::LayerRead Streams::read_by(const MHCMaps& maps, const Var& pre, Path path) {
  if (path == Path::reference) {
    const StreamMaps composed = compose_maps(maps, settle());
    return {read_streams(pre.value().defined() ? pre : composed.h_pre, last_.x, path), composed, last_.x};
  }
  const bool fuse = owed() && path_ == Path::fused;
  return fuse ? detail::mhc_read(maps, last_, f_, keep_every_, pre) : detail::mhc_read(maps, settle(), pre);
}

void Streams::write(const Var& f) {
  check<Error>(reading() && !owed(), "Streams: write() must follow read()");
  detail::check_layer_output("Streams::write", f, last_.x);
  f_ = f;
  if (path_ == Path::reference) settle();
}

Var Streams::hold(detail::LayerRead read, Path path, bool observed) {
  if (Telemetry* telemetry = Telemetry::active(); telemetry != nullptr && observed)
    telemetry->record(read.maps, read.x);
  last_ = std::move(read);
  f_ = Var();
  path_ = path;
  return std::exchange(last_.u, Var());
}

std::int64_t keep_interval(std::int64_t streams, std::int64_t sublayers) {
  check_value(streams >= 1, "keep_interval: streams must be >= 1 but is {}", streams);
  check_value(sublayers >= 0, "keep_interval: sublayers must be >= 0 but is {}", sublayers);
  const double n = static_cast<double>(streams), depth = static_cast<double>(sublayers);
  return std::max<std::int64_t>(1, std::llround(std::sqrt(n * depth / (n + 2))));
}

}  // namespace braid::mhc
