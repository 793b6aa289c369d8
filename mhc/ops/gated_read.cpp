#include <braid/mhc/ops/gated_read.h>

#include <braid/autograd/detail/in_f32.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/rms_norm.h>
#include <braid/autograd/ops/sigmoid.h>
#include <braid/autograd/ops/silu.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/sum.h>
#include <braid/mhc/detail/arguments.h>
#include <braid/mhc/kernels/gated_read.h>

namespace braid::mhc {
namespace {

using detail::In, detail::lead_of, detail::like, detail::Out;
using kernels::GatedSizes;

struct Params {
  Tensor norm, in, up;

  template <class T>
  operator kernels::GatedParams<T>() const {
    return {In{norm}, In{in}, In{up}};
  }
};

/// What is read, and by what is written; undefined where nothing is.
struct Values {
  Var u, post;  // [..., C], [..., n]
};

struct Forward {
  Tensor u, post, rstd, z;  // [..., C], [..., n], [..., n], [..., rows]
};

void check_params(const char* op, const GatedMaps& m, bool writes, const Var& x) {
  detail::check_streams(op, x);
  const std::int64_t n = x.size(-2), width = n * x.size(-1);
  check_shape(m.up.rank() == 2 && m.up.size(1) >= 1, "{}: up must have shape [{}, r] to match x {} but has {}", op,
              width, x.shape(), m.up.shape());
  const std::int64_t rank = m.up.size(1);
  detail::check_argument(op, "norm", m.norm, {width}, x);
  detail::check_argument(op, "in", m.in, {rank + (writes ? n : 0), width}, x);
  detail::check_argument(op, "up", m.up, {width, rank}, x);
}

Values composed(const GatedMaps& m, bool writes, const Var& x) {
  const std::int64_t n = x.size(-2), rank = m.up.size(1);
  const Shape flat = lead_of(x.shape()).concat({n * x.size(-1)});
  const Var normed = reshape(rms_norm(x, m.eps), flat) * (m.norm + 1.0);
  const Var z = linear(normed, m.in) / static_cast<double>(n);
  const Var gates = sigmoid(linear(silu(slice(z, -1, 0, rank)), m.up));
  return {mean(reshape(gates * normed, x.shape()), {-2}), writes ? 2.0 * sigmoid(slice(z, -1, rank, rank + n)) : Var()};
}

GatedSizes sizes_of(const Params& p, bool writes, double eps, const Tensor& x) {
  return {lead_of(x.shape()).numel(), x.size(-2), x.size(-1), p.up.size(1), writes, eps};
}

Forward forward(const char* op, const GatedSizes& s, const Params& p, const Tensor& x) {
  const auto make = [&](std::int64_t count) { return Tensor(lead_of(x.shape()).concat({count}), x.dtype()); };
  Forward out{make(s.channels), s.writes ? make(s.n) : Tensor(), make(s.n), make(s.rows())};
  kernels::gated_read_kernels().dispatch(op, x.dtype(), [&](const auto& kernel) {
    kernel.read({s, p, In{x}, Out{out.rstd}, Out{out.z}, Out{out.u}, Out{out.post}});
  });
  return out;
}

/// Cotangents of norm, in, up, x. Those that are missing are zero.
std::vector<Tensor> backward(const char* op, const GatedSizes& s, const Params& p, const Tensor& x,
                             const Forward& saved, const Tensor& du_in, const Tensor& dy_in, const Tensor& dpost_in) {
  const auto or_zero = [&](const Tensor& t, std::int64_t count) {
    return t.defined() ? t.contiguous() : zeros({s.tokens, count}, x.dtype());
  };
  const Tensor du = or_zero(du_in, s.channels), dy = dy_in.contiguous(), dpost = or_zero(dpost_in, s.n);
  Tensor dnorm = like(p.norm), din = like(p.in), dup = like(p.up), dx = like(x);
  kernels::gated_read_kernels().dispatch(op, x.dtype(), [&](const auto& kernel) {
    kernel.vjp(
        {s, p, In{x}, In{saved.rstd}, In{saved.z}, In{du}, In{dy}, In{dpost}, Out{dx}, Out{dnorm}, Out{din}, Out{dup}});
  });
  return {dnorm, din, dup, dx};
}

Params contiguous(const GatedMaps& m) {
  return {m.norm.value().contiguous(), m.in.value().contiguous(), m.up.value().contiguous()};
}

}  // namespace

Var gated_mean(const GatedMaps& m, const Var& x) {
  constexpr const char* kOp = "gated_mean";
  check_params(kOp, m, /*writes=*/false, x);
  if (x.dtype() == DType::bf16) return braid::detail::in_f32([&](const Var& wide) { return gated_mean(m, wide); }, x);
  if (m.path == Path::reference) return composed(m, false, x).u;
  const Params params = contiguous(m);
  const Tensor streams = x.value().contiguous();
  const GatedSizes sizes = sizes_of(params, false, m.eps, streams);
  const Forward out = forward(kOp, sizes, params, streams);
  return record(kOp, out.u, {m.norm, m.in, m.up, x},
                [=](const Tensor& du, const Needs&) { return backward(kOp, sizes, params, streams, out, du, {}, {}); });
}

namespace detail {

LayerRead gated_read(const GatedMaps& m, const Var& x) {
  constexpr const char* kOp = "gated_read";
  check_params(kOp, m, /*writes=*/true, x);
  if (x.dtype() == DType::bf16) {
    const LayerRead wide = gated_read(m, cast(x, DType::f32));
    return {cast(wide.u, DType::bf16), wide.maps, cast(wide.x, DType::bf16)};
  }
  const Tensor identity = eye(x.size(-2), x.dtype());
  if (m.path == Path::reference) {
    const Values values = composed(m, true, x);
    return {values.u, {{}, values.post, identity, /*gated=*/false}, x};
  }
  const Params params = contiguous(m);
  const Tensor streams = x.value().contiguous();
  const GatedSizes sizes = sizes_of(params, true, m.eps, streams);
  const Forward out = forward(kOp, sizes, params, streams);
  const std::vector<Var> results = record(kOp, {out.u, streams, out.post}, std::vector{m.norm, m.in, m.up, x},
                                          [=](std::span<const Tensor> dys, const Needs&) {
                                            return backward(kOp, sizes, params, streams, out, dys[0], dys[1], dys[2]);
                                          });
  return {results[0], {{}, results[2], identity, /*gated=*/false}, results[1]};
}

}  // namespace detail
}  // namespace braid::mhc
