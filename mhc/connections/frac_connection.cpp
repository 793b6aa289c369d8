#include <braid/mhc/connections/frac_connection.h>

#include <braid/autograd/ops.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/mhc/streams/connection_hook.h>
#include <braid/nn/init.h>

namespace braid::mhc {
namespace {

/// pattern [rows, columns] of 0 and 1 -> [rows f, columns f]: `on` where the pattern is 1 and fractions are the same.
Tensor for_fractions(const Tensor& pattern, std::int64_t f, double on, double off, DType dtype) {
  const std::int64_t rows = pattern.size(0), columns = pattern.size(1);
  const Var same = reshape(Var(eye(f, pattern.dtype())), {1, f, 1, f}) * reshape(pattern, {rows, 1, columns, 1});
  return cast(reshape(same, {rows * f, columns * f}) * (on - off) + off, dtype).value();
}

/// x [..., n, C] or [..., C], whose last `axes` axes are a token's, as fractions [..., rows, width].
Var split(const Var& x, int axes, std::int64_t width) {
  const std::int64_t rows = x.shape().axes(x.rank() - axes, x.rank()).numel() / width;
  return reshape(x, x.shape().axes(0, x.rank() - axes).concat({rows, width}));
}

}  // namespace

FracConnection::FracConnection(std::int64_t channels, std::int64_t streams, std::int64_t layer_index, Rng& rng,
                               const FracConnectionSettings& s)
    : channels(channels), settings(s) {
  const std::int64_t f = s.fractions, v = s.views;
  for (const auto& [name, value] : {std::pair{"streams", streams},
                                    {"fractions", f},
                                    {"proposals", s.proposals},
                                    {"views", v},
                                    {"sinkhorn_iterations", s.sinkhorn_iterations}})
    check_value(value >= 1, "FracConnection: {} must be >= 1 but is {}", name, value);
  check_value(layer_index >= 0, "FracConnection: layer_index must be >= 0 but is {}", layer_index);
  check_value(s.theta_std >= 0, "FracConnection: theta_std must be >= 0 but is {}", s.theta_std);
  check_value(channels >= 1 && channels % f == 0,
              "FracConnection: channels must be a positive multiple of fractions {} but is {}", f, channels);
  const Shape shape{s.proposals * (v + streams) * f, channels / f};
  theta = s.theta_std > 0 ? nn::init::normal(shape, s.theta_std, rng, s.dtype) : zeros(shape, s.dtype);
  theta_post = zeros({f, channels / f}, s.dtype);
  alpha = full({3}, s.alpha, s.dtype);
  const Tensor every = eye(streams), read = every.slice(0, layer_index % streams, layer_index % streams + 1);
  const double on = s.constrained ? 8 : 1, off = s.constrained ? -8 : 0;
  b_pre = for_fractions(read.broadcast_to({v, streams}), f, on, off, s.dtype);
  b_post = for_fractions(ones({streams, 1}), f, s.constrained ? 0 : 1, off, s.dtype);
  b_res = for_fractions(every, f, on, 0, s.dtype);
}

StreamMaps FracConnection::maps(const Var& x) const {
  check_streams("FracConnection", x.shape(), streams(), channels);
  const std::int64_t reads = b_pre.size(0), all = b_res.size(0), f = settings.fractions, rows = theta.size(0);
  const Shape lead = x.shape().axes(0, x.rank() - 2);
  const Var normed = rms_norm(cast(split(x, 2, channels / f), theta.dtype()), settings.eps);
  Var t = transpose(linear(normed, concat({theta, theta_post}, 0)));  // [..., rows + f, n f]
  if (!settings.constrained) t = tanh(t);
  const Var of_theta = reshape(slice(t, -2, 0, rows), lead.concat({settings.proposals, reads + all, all}));
  const Var of_post = reshape(slice(t, -2, rows, rows + f), lead.concat({f, streams(), f}));
  Var h_pre = select(alpha, 0, 0) * slice(of_theta, -2, 0, reads) + b_pre;
  Var h_post = select(alpha, 0, 1) * reshape(transpose(of_post, -3, -2), lead.concat({all, f})) + b_post;
  Var h_res = select(alpha, 0, 2) * slice(of_theta, -2, reads, reads + all) + b_res;
  if (settings.constrained) {
    h_pre = sigmoid(h_pre);
    h_post = 2 * sigmoid(h_post);
    h_res = sinkhorn_knopp(h_res, settings.sinkhorn_iterations);
  }
  const auto average = [](const Var& maps) { return maps.size(-3) == 1 ? squeeze(maps, -3) : mean(maps, -3); };
  return {.h_pre = average(h_pre), .h_post = h_post, .h_res = average(h_res), .gated = settings.constrained};
}

Var FracConnection::read(const StreamMaps& maps, const Var& x) const {
  const Var fractions = split(x, 2, channels / settings.fractions);
  if (ConnectionHook* hook = ConnectionHook::active()) hook->record(maps, fractions);
  const Var u = mix_streams(maps.h_pre, fractions);
  const Shape lead = x.shape().axes(0, x.rank() - 2);
  if (settings.views == 1) return reshape(u, lead.concat({channels}));
  const Var views = transpose(reshape(u, {lead.numel(), settings.views, channels}), 0, 1);
  return reshape(views, Shape{settings.views}.concat(lead).concat({channels}));
}

Var FracConnection::write(const StreamMaps& maps, const Var& x, const Var& f) const {
  detail::check_layer_output("FracConnection", f, x);
  const std::int64_t width = channels / settings.fractions;
  return reshape(mix_streams(maps.h_res, split(x, 2, width)) + mix_streams(maps.h_post, split(f, 1, width)), x.shape());
}

}  // namespace braid::mhc
