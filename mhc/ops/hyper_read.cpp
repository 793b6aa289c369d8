#include <braid/mhc/ops/hyper_read.h>

#include <braid/autograd/ops.h>
#include <braid/mhc/kernels/hyper_read.h>
#include <braid/mhc/kernels/tiles.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {
namespace {

using detail::check_argument, detail::In, detail::lead_of, detail::like, detail::Out;

/// Rows of maps are pre [n], post [n], res [n, n].
struct Forward {
  Tensor u, maps, s, rstd;  // [..., C], [..., n + 2, n], [..., m], [..., n]
};

void check_params(const HyperMaps& c, const Var& x) {
  detail::check_streams("HyperConnection", x);
  const std::int64_t n = x.size(-2);
  check_argument("HyperConnection", "theta", c.theta, {n + 2, x.size(-1)}, x);
  check_argument("HyperConnection", "alpha", c.alpha, {3}, x);
  check_argument("HyperConnection", "bias", c.bias, {n * (n + 2)}, x);
}

/// The parameters are contiguous, as is x.
Forward forward(const HyperMaps& m, const Tensor& x) {
  const kernels::StreamSizes s = kernels::sizes_of(x.shape());
  const auto make = [&](const Shape& tail) {
    return Tensor(lead_of(x.shape()).concat(tail), compute_dtype(x.dtype()));
  };
  Forward out{.u = Tensor(x.shape().without(-2), x.dtype()),
              .maps = make({s.n + 2, s.n}),
              .s = make({s.n * (s.n + 2)}),
              .rstd = make({s.n})};
  kernels::hyper_read_kernels().dispatch("HyperConnection", x.dtype(), [&](const auto& kernel) {
    kernel.read({.sizes = s,
                 .eps = m.eps,
                 .params = {.theta = In{m.theta.value()}, .alpha = In{m.alpha.value()}, .bias = In{m.bias.value()}},
                 .x = In{x},
                 .s = Out{out.s},
                 .rstd = Out{out.rstd},
                 .maps = Out{out.maps},
                 .u = Out{out.u}});
  });
  return out;
}

/// Cotangents of theta, alpha, bias, x.
std::vector<Tensor> backward(const HyperMaps& m, const Tensor& x, const Forward& saved, std::span<const Tensor> dys) {
  const Tensor du = dys[0].contiguous(), dy = dys[1].contiguous(), dh_post = dys[2].contiguous();
  Tensor dtheta = like(m.theta.value()), dalpha = like(m.alpha.value()), dbias = like(m.bias.value()), dx = like(x);
  kernels::hyper_read_kernels().dispatch("HyperConnection", x.dtype(), [&](const auto& kernel) {
    kernel.vjp({.sizes = kernels::sizes_of(x.shape()),
                .params = {.theta = In{m.theta.value()}, .alpha = In{m.alpha.value()}, .bias = In{m.bias.value()}},
                .x = In{x},
                .s = In{saved.s},
                .rstd = In{saved.rstd},
                .maps = In{saved.maps},
                .du = In{du},
                .dy = In{dy},
                .dh_post = In{dh_post},
                .dx = Out{dx},
                .dtheta = Out{dtheta},
                .dalpha = Out{dalpha},
                .dbias = Out{dbias}});
  });
  return {dtheta, dalpha, dbias, dx};
}

}  // namespace

StreamMaps compose_maps(const HyperMaps& m, const Var& x) {
  check_params(m, x);
  const std::int64_t n = x.size(-2);
  // [..., n, 2 + n]: one product for all three maps
  const Var t = tanh(linear(rms_norm(cast(x, m.alpha.dtype()), m.eps), m.theta));
  const auto alpha = [&](int map) { return slice(m.alpha, 0, map, map + 1); };
  return {.h_pre = alpha(0) * squeeze(slice(t, -1, 0, 1), -1) + slice(m.bias, 0, 0, n),
          .h_post = alpha(1) * squeeze(slice(t, -1, 1, 2), -1) + slice(m.bias, 0, n, 2 * n),
          .h_res = alpha(2) * transpose(slice(t, -1, 2, 2 + n)) + reshape(slice(m.bias, 0, 2 * n, n * (n + 2)), {n, n}),
          .gated = false};
}

LayerRead read_maps(const HyperMaps& m, StreamState& streams_in) {
  const Var& x = streams_in.settle();
  if (composed()) return read_maps(compose_maps(m, x), streams_in);
  check_params(m, x);
  const HyperMaps params{.theta = m.theta.value().contiguous(),
                         .alpha = m.alpha.value().contiguous(),
                         .bias = m.bias.value().contiguous(),
                         .eps = m.eps};
  const Tensor streams = x.value().contiguous();
  const Forward out = forward(params, streams);
  const Tensor h_post = out.maps.select(-2, 1), h_res = out.maps.slice(-2, 2, out.maps.size(-2));
  const std::vector<Var> results =
      record("hyper_read", {out.u, streams, h_post, h_res}, std::vector{m.theta, m.alpha, m.bias, x},
             [=](std::span<const Tensor> dys, const Needs&) { return backward(params, streams, out, dys); });
  return {.u = results[0],
          .maps = {.h_pre = out.maps.select(-2, 0), .h_post = results[2], .h_res = results[3], .gated = false},
          .x = results[1]};
}

}  // namespace braid::mhc
