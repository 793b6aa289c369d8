#include <braid/mhc/ops/mhc_layer.h>

#include <braid/autograd/ops/rms_norm.h>
#include <braid/mhc/kernels/mhc_layer.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {
namespace {

using detail::check_argument, detail::like;

/// Cotangents of h_pre, h_post, h_res, weight, x.
std::vector<Tensor> backward(const Tensor& cotangent, const kernels::MHCLayer& in, const Tensor& rstd) {
  const Tensor dy = cotangent.contiguous();
  kernels::MHCLayer d{like(in.h_pre), like(in.h_post), like(in.h_res), like(in.weight), like(in.x)};
  kernels::mhc_layer_kernels().dispatch("mhc_layer", dy.dtype(),
                                        [&](const auto& kernel) { kernel.vjp(in, rstd, dy, d); });
  return {d.h_pre, d.h_post, d.h_res, d.weight, d.x};
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
  const kernels::MHCLayer in{.h_pre = h_pre.value().contiguous(),
                             .h_post = h_post.value().contiguous(),
                             .h_res = h_res.value().contiguous(),
                             .weight = weight.value().contiguous(),
                             .x = x.value().contiguous()};
  Tensor y(x.shape(), x.dtype()), rstd({detail::lead_of(x.shape()).numel()}, compute_dtype(x.dtype()));
  kernels::mhc_layer_kernels().dispatch("mhc_layer", x.dtype(),
                                        [&](const auto& kernel) { kernel.forward(in, eps, y, rstd); });
  return record("mhc_layer", y, {h_pre, h_post, h_res, weight, x},
                [in, rstd](const Tensor& dy) { return backward(dy, in, rstd); });
}

}  // namespace braid::mhc
