#include <braid/mhc/streams/streams.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {

Streams::Streams(Var x, std::int64_t keep_every)
    : state_{.last = {.u = {}, .maps = {}, .x = std::move(x)}, .keep_every = keep_every} {
  detail::check_streams("Streams", state_.last.x);
  check_value(keep_every >= 1, "Streams: keep_every must be >= 1 but is {}", keep_every);
}

void Streams::add(const Var& each) {
  const Var& streams = settle();
  detail::check_argument("Streams::add", "each", each, {streams.size(-2), streams.size(-1)}, streams);
  state_.last.x = braid::detail::in_f32([](const Var& x, const Var& e) { return x + e; }, streams, each);
}

void Streams::write(Var f) {
  check<Error>(state_.reading() && !state_.pending(), "Streams: write() must follow read()");
  if (ConnectionHook* hook = ConnectionHook::active()) f = hook->write(f);
  detail::check_layer_output("Streams::write", f, state_.last.x);
  state_.f = std::move(f);
  if (!state_.last.deferred) settle();
}

Var Streams::hold(LayerRead read) {
  state_.last = std::move(read);
  state_.f = Var();
  return std::exchange(state_.last.u, Var());
}

std::int64_t keep_interval(std::int64_t streams, std::int64_t sublayers) {
  check_value(streams >= 1, "keep_interval: streams must be >= 1 but is {}", streams);
  check_value(sublayers >= 0, "keep_interval: sublayers must be >= 0 but is {}", sublayers);
  const double n = static_cast<double>(streams), depth = static_cast<double>(sublayers);
  return std::max<std::int64_t>(1, std::llround(std::sqrt(n * depth / (n + 2))));
}

}  // namespace braid::mhc
