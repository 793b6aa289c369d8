#include <braid/mhc/ops/hyper_read.h>

#include <braid/mhc/kernels/hyper_read.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc::detail {
namespace {

using kernels::data_or_null;

struct Params {
  Tensor theta, alpha, bias;

  template <class T>
  kernels::HyperParams<T> kernel() const {
    return {theta.data<T>(), alpha.data<T>(), bias.data<T>()};
  }
};

struct Forward {
  Tensor u, h_pre, h_post, h_res, s, rstd;  // [..., C], [..., n], [..., n], [..., n, n], [..., m], [..., n]
};

void check_params(const HyperMaps& c, const Var& x) {
  check_streams("HyperConnection", x);
  const std::int64_t n = x.size(-2);
  const auto expect = [&](const char* name, const Var& param, const Shape& shape) {
    check_shape(param.shape() == shape, "HyperConnection: {} must have shape {} to match x {} but has {}", name, shape,
                x.shape(), param.shape());
    check_same_dtype("HyperConnection", x.value(), param.value());
  };
  expect("theta", c.theta, {n + 2, x.size(-1)});
  expect("alpha", c.alpha, {3});
  expect("bias", c.bias, {n * (n + 2)});
}

Forward forward(const Params& params, double eps, const Tensor& x) {
  const kernels::StreamSizes s = kernels::sizes_of(x.shape());
  const auto make = [&](const Shape& tail) { return Tensor(x.shape().axes(0, x.rank() - 2).concat(tail), x.dtype()); };
  Forward out{make({s.channels}), make({s.n}), make({s.n}), make({s.n, s.n}), make({s.n * (s.n + 2)}), make({s.n})};
  dispatch_float("HyperConnection", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::hyper_read_kernels().of<T>().read({s, eps, params.kernel<T>(), x.data<T>(), out.s.mutable_data<T>(),
                                                out.rstd.mutable_data<T>(), out.h_pre.mutable_data<T>(),
                                                out.h_post.mutable_data<T>(), out.h_res.mutable_data<T>(),
                                                out.u.mutable_data<T>()});
  });
  return out;
}

/// Cotangents of theta, alpha, bias, x.
std::vector<Tensor> backward(const Params& params, const Tensor& x, const Forward& saved, std::span<const Tensor> dys) {
  const Tensor du = dys[0].contiguous(), dy = dys[1].contiguous(), dh_post = dys[2].contiguous();
  const auto like = [](const Tensor& t) { return Tensor(t.shape(), t.dtype()); };
  Tensor dtheta = like(params.theta), dalpha = like(params.alpha), dbias = like(params.bias), dx = like(x);
  dispatch_float("HyperConnection", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::hyper_read_kernels().of<T>().vjp({kernels::sizes_of(x.shape()), params.kernel<T>(), x.data<T>(),
                                               saved.s.data<T>(), saved.rstd.data<T>(), saved.h_pre.data<T>(),
                                               saved.h_res.data<T>(), data_or_null<T>(du), data_or_null<T>(dy),
                                               data_or_null<T>(dh_post), dx.mutable_data<T>(), dtheta.mutable_data<T>(),
                                               dalpha.mutable_data<T>(), dbias.mutable_data<T>()});
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
      record("hyper_read", {out.u, streams, out.h_post}, std::vector{c.theta, c.alpha, c.bias, x},
             [=](std::span<const Tensor> dys, const Needs&) { return backward(params, streams, out, dys); });
  return {results[0], {out.h_pre, results[2], out.h_res, /*gated=*/false}, results[1]};
}

}  // namespace braid::mhc::detail
