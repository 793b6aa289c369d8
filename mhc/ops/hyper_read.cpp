#include <braid/mhc/ops/hyper_read.h>

#include <braid/autograd/ops.h>
#include <braid/mhc/kernels/hyper_read.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {
namespace {

using detail::check_argument, detail::lead_of, detail::like, kernels::HyperRead, kernels::HyperSaved;

void check_params(const HyperMaps& c, const Var& x) {
  detail::check_streams("HyperConnection", x);
  const std::int64_t n = x.size(-2);
  check_argument("HyperConnection", "theta", c.theta, {n + 2, x.size(-1)}, x);
  check_argument("HyperConnection", "alpha", c.alpha, {3}, x);
  check_argument("HyperConnection", "bias", c.bias, {n * (n + 2)}, x);
}

/// Cotangents of theta, alpha, bias, x.
std::vector<Tensor> backward(const HyperRead& in, const HyperSaved& saved, std::span<const Tensor> dys) {
  const Tensor du = dys[0].contiguous(), dy = dys[1].contiguous(), dh_post = dys[2].contiguous();
  HyperRead d{.theta = like(in.theta), .alpha = like(in.alpha), .bias = like(in.bias), .x = like(in.x)};
  kernels::hyper_read_kernels().dispatch("HyperConnection", in.x.dtype(),
                                         [&](const auto& kernel) { kernel.vjp(in, saved, du, dy, dh_post, d); });
  return {d.theta, d.alpha, d.bias, d.x};
}

}  // namespace

StreamMaps compose_maps(const HyperMaps& m, const Var& x) {
  check_params(m, x);
  const std::int64_t n = x.size(-2);
  // [..., n, 2 + n]: one product for all three maps
  const Var t = tanh(linear(rms_norm(cast(x, m.alpha.dtype()), m.eps), m.theta));
  const auto alpha = [&](int map) { return slice(m.alpha, 0, map, map + 1); };
  return {.h_pre = alpha(0) * select(t, -1, 0) + slice(m.bias, 0, 0, n),
          .h_post = alpha(1) * select(t, -1, 1) + slice(m.bias, 0, n, 2 * n),
          .h_res = alpha(2) * transpose(slice(t, -1, 2, 2 + n)) + reshape(slice(m.bias, 0, 2 * n, n * (n + 2)), {n, n}),
          .gated = false};
}

LayerRead read_maps(const HyperMaps& m, StreamState& streams_in) {
  const Var& x = streams_in.settle();
  if (composed()) return read_maps(compose_maps(m, x), streams_in);
  check_params(m, x);
  const HyperRead in{.theta = m.theta.value().contiguous(),
                     .alpha = m.alpha.value().contiguous(),
                     .bias = m.bias.value().contiguous(),
                     .x = x.value().contiguous()};
  const std::int64_t n = x.size(-2);
  const auto make = [&](const Shape& tail) {
    return Tensor(lead_of(x.shape()).concat(tail), compute_dtype(x.dtype()));
  };
  HyperSaved saved{.maps = make({n + 2, n}), .s = make({n * (n + 2)}), .rstd = make({n})};
  Tensor u(x.shape().without(-2), x.dtype());
  kernels::hyper_read_kernels().dispatch("HyperConnection", x.dtype(),
                                         [&](const auto& kernel) { kernel.read(in, m.eps, saved, u); });
  const Tensor h_post = saved.maps.select(-2, 1), h_res = saved.maps.slice(-2, 2, saved.maps.size(-2));
  const std::vector<Var> results =
      record("hyper_read", {u, in.x, h_post, h_res}, std::vector{m.theta, m.alpha, m.bias, x},
             [=](std::span<const Tensor> dys, const Needs&) { return backward(in, saved, dys); });
  return {.u = results[0],
          .maps = {.h_pre = saved.maps.select(-2, 0), .h_post = results[2], .h_res = results[3], .gated = false},
          .x = results[1]};
}

}  // namespace braid::mhc
