#include <braid/mhc/ops/mhc_layer.h>

#include <braid/mhc/detail/arguments.h>
#include <braid/mhc/kernels/mhc_layer.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc {
namespace {

using detail::check_argument, detail::In, detail::like, detail::Out;

struct Params {
  Tensor h_pre, h_post, h_res, weight;
};

struct Forward {
  Tensor y, rstd;  // [..., n, C], [tokens]
};

Forward forward(const Params& params, const Tensor& x, double eps) {
  const kernels::StreamSizes s = kernels::sizes_of(x.shape());
  Tensor y(x.shape(), x.dtype()), rstd({s.tokens}, x.dtype());
  dispatch_float("mhc_layer", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const kernels::MHCLayerParams<T> maps{In{params.h_pre}, In{params.h_post}, In{params.h_res}, In{params.weight}};
    kernels::mhc_layer_kernels().of<T>().forward({s, eps, maps, In{x}, Out{y}, Out{rstd}});
  });
  return {y, rstd};
}

/// Cotangents of h_pre, h_post, h_res, weight, x.
std::vector<Tensor> backward(const Tensor& cotangent, const Params& params, const Tensor& x, const Tensor& rstd) {
  const Tensor dy = cotangent.contiguous();
  Tensor dh_pre = like(params.h_pre), dh_post = like(params.h_post), dh_res = like(params.h_res),
         dweight = like(params.weight), dx = like(x);
  dispatch_float("mhc_layer", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const kernels::MHCLayerParams<T> maps{In{params.h_pre}, In{params.h_post}, In{params.h_res}, In{params.weight}};
    kernels::mhc_layer_kernels().of<T>().vjp({kernels::sizes_of(x.shape()), maps, In{x}, In{rstd}, In{dy}, Out{dx},
                                              Out{dh_pre}, Out{dh_post}, Out{dh_res}, Out{dweight}});
  });
  return {dh_pre, dh_post, dh_res, dweight, dx};
}

}  // namespace

Var mhc_layer(const Var& h_pre, const Var& h_post, const Var& h_res, const Var& weight, const Var& x, double eps) {
  check_shape(x.rank() >= 2, "mhc_layer: x must have shape [..., n, C] but has {}", x.shape());
  const std::int64_t n = x.size(-2);
  check_argument("mhc_layer", "h_pre", h_pre, {n}, x);
  check_argument("mhc_layer", "h_post", h_post, {n}, x);
  check_argument("mhc_layer", "h_res", h_res, {n, n}, x);
  check_argument("mhc_layer", "weight", weight, {x.size(-1)}, x);
  const Params params{h_pre.value().contiguous(), h_post.value().contiguous(), h_res.value().contiguous(),
                      weight.value().contiguous()};
  const Tensor streams = x.value().contiguous();
  const Forward out = forward(params, streams, eps);
  return record("mhc_layer", out.y, {h_pre, h_post, h_res, weight, x},
                [params, streams, rstd = out.rstd](const Tensor& dy) { return backward(dy, params, streams, rstd); });
}

}  // namespace braid::mhc
