#include <braid/mhc/ops/hyper_read.h>

#include <braid/mhc/detail/arguments.h>
#include <braid/mhc/kernels/hyper_read.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc::detail {
namespace {

struct Params {
  Tensor theta, alpha, bias;

  template <class T>
  operator kernels::HyperParams<T>() const {
    return {In{theta}, In{alpha}, In{bias}};
  }
};

struct Forward {
  Tensor u, h_pre, h_post, h_res, s, rstd;  // [..., C], [..., n], [..., n], [..., n, n], [..., m], [..., n]
};

void check_params(const HyperMaps& c, const Var& x) {
  check_streams("HyperConnection", x);
  const std::int64_t n = x.size(-2);
  check_argument("HyperConnection", "theta", c.theta, {n + 2, x.size(-1)}, x);
  check_argument("HyperConnection", "alpha", c.alpha, {3}, x);
  check_argument("HyperConnection", "bias", c.bias, {n * (n + 2)}, x);
}

Forward forward(const Params& p, double eps, const Tensor& x) {
  const kernels::StreamSizes s = kernels::sizes_of(x.shape());
  const auto make = [&](const Shape& tail) {
    return Tensor(lead_of(x.shape()).concat(tail), compute_dtype(x.dtype()));
  };
  Forward out{Tensor(x.shape().without(-2), x.dtype()),
              make({s.n}),
              make({s.n}),
              make({s.n, s.n}),
              make({s.n * (s.n + 2)}),
              make({s.n})};
  kernels::hyper_read_kernels().dispatch("HyperConnection", x.dtype(), [&](const auto& kernel) {
    kernel.read(
        {s, eps, p, In{x}, Out{out.s}, Out{out.rstd}, Out{out.h_pre}, Out{out.h_post}, Out{out.h_res}, Out{out.u}});
  });
  return out;
}

/// Cotangents of theta, alpha, bias, x.
std::vector<Tensor> backward(const Params& p, const Tensor& x, const Forward& saved, std::span<const Tensor> dys) {
  const Tensor du = dys[0].contiguous(), dy = dys[1].contiguous(), dh_post = dys[2].contiguous();
  Tensor dtheta = like(p.theta), dalpha = like(p.alpha), dbias = like(p.bias), dx = like(x);
  kernels::hyper_read_kernels().dispatch("HyperConnection", x.dtype(), [&](const auto& kernel) {
    kernel.vjp({kernels::sizes_of(x.shape()), p, In{x}, In{saved.s}, In{saved.rstd}, In{saved.h_pre}, In{saved.h_res},
                In{du}, In{dy}, In{dh_post}, Out{dx}, Out{dtheta}, Out{dalpha}, Out{dbias}});
  });
  return {dtheta, dalpha, dbias, dx};
}

}  // namespace

LayerRead hyper_read(const HyperMaps& c, const Var& x) {
  check_params(c, x);
  const Params params{c.theta.value().contiguous(), c.alpha.value().contiguous(), c.bias.value().contiguous()};
  const Tensor streams = x.value().contiguous();
  const Forward out = forward(params, c.eps, streams);
  const std::vector<Var> results =
      record("hyper_read", {out.u, streams, out.h_post, out.h_res}, std::vector{c.theta, c.alpha, c.bias, x},
             [=](std::span<const Tensor> dys, const Needs&) { return backward(params, streams, out, dys); });
  return {results[0], {out.h_pre, results[2], results[3], /*gated=*/false}, results[1]};
}

}  // namespace braid::mhc::detail
