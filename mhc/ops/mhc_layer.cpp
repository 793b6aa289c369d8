#include <braid/mhc/ops/mhc_layer.h>

#include <braid/autograd/ops/rms_norm.h>
#include <braid/mhc/kernels/mhc_layer.h>
#include <braid/mhc/kernels/tiles.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {
namespace {

using detail::check_argument, detail::In, detail::like, detail::Out;

struct Params {
  Tensor h_pre, h_post, h_res, weight;

  template <class T>
  operator kernels::MHCLayerParams<T>() const {
    return {.h_pre = In{h_pre}, .h_post = In{h_post}, .h_res = In{h_res}, .weight = In{weight}};
  }
};

/// y [..., n, C] and rstd [tokens].
std::pair<Tensor, Tensor> forward(const Params& p, const Tensor& x, double eps) {
  const kernels::StreamSizes s = kernels::sizes_of(x.shape());
  Tensor y(x.shape(), x.dtype()), rstd({s.tokens}, compute_dtype(x.dtype()));
  kernels::mhc_layer_kernels().dispatch("mhc_layer", x.dtype(), [&](const auto& kernel) {
    kernel.forward({.sizes = s, .eps = eps, .params = p, .x = In{x}, .y = Out{y}, .rstd = Out{rstd}});
  });
  return {y, rstd};
}

/// Cotangents of h_pre, h_post, h_res, weight, x.
std::vector<Tensor> backward(const Tensor& cotangent, const Params& p, const Tensor& x, const Tensor& rstd) {
  const Tensor dy = cotangent.contiguous();
  Tensor dh_pre = like(p.h_pre), dh_post = like(p.h_post), dh_res = like(p.h_res), dweight = like(p.weight),
         dx = like(x);
  kernels::mhc_layer_kernels().dispatch("mhc_layer", x.dtype(), [&](const auto& kernel) {
    kernel.vjp({.sizes = kernels::sizes_of(x.shape()),
                .params = p,
                .x = In{x},
                .rstd = In{rstd},
                .dy = In{dy},
                .dx = Out{dx},
                .dh_pre = Out{dh_pre},
                .dh_post = Out{dh_post},
                .dh_res = Out{dh_res},
                .dweight = Out{dweight}});
  });
  return {dh_pre, dh_post, dh_res, dweight, dx};
}

}  // namespace

Var mhc_layer(const Var& h_pre, const Var& h_post, const Var& h_res, const Var& weight, const Var& x, double eps) {
  detail::check_streams("mhc_layer", x);
  const std::int64_t n = x.size(-2);
  check_argument("mhc_layer", "h_pre", h_pre, {n}, x);
  check_argument("mhc_layer", "h_post", h_post, {n}, x);
  check_argument("mhc_layer", "h_res", h_res, {n, n}, x);
  check_argument("mhc_layer", "weight", weight, {x.size(-1)}, x);
  if (composed()) return write_streams(h_res, h_post, x, rms_norm(read_streams(h_pre, x), weight, eps));
  const Params params{.h_pre = h_pre.value().contiguous(),
                      .h_post = h_post.value().contiguous(),
                      .h_res = h_res.value().contiguous(),
                      .weight = weight.value().contiguous()};
  const Tensor streams = x.value().contiguous();
  const auto [y, rstd] = forward(params, streams, eps);
  return record("mhc_layer", y, {h_pre, h_post, h_res, weight, x},
                [params, streams, rstd = rstd](const Tensor& dy) { return backward(dy, params, streams, rstd); });
}

}  // namespace braid::mhc
