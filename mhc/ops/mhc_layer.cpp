#include <braid/mhc/ops/mhc_layer.h>

#include <braid/mhc/kernels/mhc_layer.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc {
namespace {

struct Params {
  Tensor h_pre, h_post, h_res, weight;

  template <class T>
  kernels::MHCLayerParams<T> kernel() const {
    return {h_pre.data<T>(), h_post.data<T>(), h_res.data<T>(), weight.data<T>()};
  }
};

struct Forward {
  Tensor y, rstd;  // [..., n, C], [tokens]
};

Forward forward(const Params& params, const Tensor& x, double eps) {
  const kernels::StreamSizes s = kernels::sizes_of(x.shape());
  Tensor y(x.shape(), x.dtype()), rstd({s.tokens}, x.dtype());
  dispatch_float("mhc_layer", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::mhc_layer_kernels().of<T>().forward(
        {s, eps, params.kernel<T>(), x.data<T>(), y.mutable_data<T>(), rstd.mutable_data<T>()});
  });
  return {y, rstd};
}

/// Cotangents of h_pre, h_post, h_res, weight, x.
std::vector<Tensor> backward(const Tensor& cotangent, const Params& params, const Tensor& x, const Tensor& rstd) {
  const Tensor dy = cotangent.contiguous();
  const auto like = [](const Tensor& t) { return Tensor(t.shape(), t.dtype()); };
  Tensor dh_pre = like(params.h_pre), dh_post = like(params.h_post), dh_res = like(params.h_res),
         dweight = like(params.weight), dx = like(x);
  dispatch_float("mhc_layer", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::mhc_layer_kernels().of<T>().vjp({kernels::sizes_of(x.shape()), params.kernel<T>(), x.data<T>(),
                                              rstd.data<T>(), dy.data<T>(), dx.mutable_data<T>(),
                                              dh_pre.mutable_data<T>(), dh_post.mutable_data<T>(),
                                              dh_res.mutable_data<T>(), dweight.mutable_data<T>()});
  });
  return {dh_pre, dh_post, dh_res, dweight, dx};
}

}  // namespace

Var mhc_layer(const Var& h_pre, const Var& h_post, const Var& h_res, const Var& weight, const Var& x, double eps) {
  check_shape(x.rank() >= 2, "mhc_layer: x must have shape [..., n, C] but has {}", x.shape());
  const std::int64_t n = x.size(-2);
  const auto contiguous = [&](const char* name, const Var& param, const Shape& shape) {
    check_shape(param.shape() == shape, "mhc_layer: {} must have shape {} to match x {} but has {}", name, shape,
                x.shape(), param.shape());
    check_same_dtype("mhc_layer", x.value(), param.value());
    return param.value().contiguous();
  };
  const Params params{contiguous("h_pre", h_pre, {n}), contiguous("h_post", h_post, {n}),
                      contiguous("h_res", h_res, {n, n}), contiguous("weight", weight, {x.size(-1)})};
  const Tensor streams = x.value().contiguous();
  const Forward out = forward(params, streams, eps);
  return record("mhc_layer", out.y, {h_pre, h_post, h_res, weight, x},
                [params, streams, rstd = out.rstd](const Tensor& dy) { return backward(dy, params, streams, rstd); });
}

}  // namespace braid::mhc
