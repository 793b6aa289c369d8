#include <braid/mhc/ops/gated_read.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/mhc/kernels/gated_read.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {
namespace {

using detail::In, detail::lead_of, detail::like, detail::Out;
using kernels::GatedSizes;

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

/// The input of a layer [..., C] and the weights of the write [..., n], undefined without one.
std::pair<Var, Var> compose(const GatedMaps& m, bool writes, const Var& x) {
  const std::int64_t n = x.size(-2), rank = m.up.size(1);
  const Shape flat = lead_of(x.shape()).concat({n * x.size(-1)});
  const Var normed = reshape(rms_norm(x, m.eps), flat) * (m.norm + 1.0);
  const Var z = linear(normed, m.in) / static_cast<double>(n);
  const Var gates = sigmoid(linear(silu(slice(z, -1, 0, rank)), m.up));
  return {mean(reshape(gates * normed, x.shape()), {-2}), writes ? 2.0 * sigmoid(slice(z, -1, rank, rank + n)) : Var()};
}

/// A read and the arguments that its forward and backward passes share.
struct Read {
  const char* op;
  GatedSizes sizes;
  Tensor norm, in, up;
  Tensor x;

  Read(const char* op, const GatedMaps& m, bool writes, const Var& streams)
      : op(op),
        sizes{.tokens = lead_of(streams.shape()).numel(),
              .n = streams.size(-2),
              .channels = streams.size(-1),
              .rank = m.up.size(1),
              .writes = writes,
              .eps = m.eps},
        norm(m.norm.value().contiguous()),
        in(m.in.value().contiguous()),
        up(m.up.value().contiguous()),
        x(streams.value().contiguous()) {}

  Forward forward() const {
    const GatedSizes& s = sizes;
    const auto make = [&](std::int64_t count) { return Tensor(lead_of(x.shape()).concat({count}), x.dtype()); };
    Forward out{.u = make(s.channels), .post = s.writes ? make(s.n) : Tensor(), .rstd = make(s.n), .z = make(s.rows())};
    kernels::gated_read_kernels().dispatch(op, x.dtype(), [&](const auto& kernel) {
      kernel.read({.sizes = s,
                   .params = {.norm = In{norm}, .in = In{in}, .up = In{up}},
                   .x = In{x},
                   .rstd = Out{out.rstd},
                   .z = Out{out.z},
                   .u = Out{out.u},
                   .post = Out{out.post}});
    });
    return out;
  }

  /// Cotangents of norm, in, up, x. Undefined cotangents of results are zero.
  std::vector<Tensor> backward(const Forward& saved, const Tensor& du_in, const Tensor& dy_in,
                               const Tensor& dpost_in) const {
    const auto or_zero = [&](const Tensor& t, std::int64_t count) {
      return t.defined() ? t.contiguous() : zeros({sizes.tokens, count}, x.dtype());
    };
    const Tensor du = or_zero(du_in, sizes.channels), dy = dy_in.contiguous(), dpost = or_zero(dpost_in, sizes.n);
    Tensor dnorm = like(norm), din = like(in), dup = like(up), dx = like(x);
    kernels::gated_read_kernels().dispatch(op, x.dtype(), [&](const auto& kernel) {
      kernel.vjp({.sizes = sizes,
                  .params = {.norm = In{norm}, .in = In{in}, .up = In{up}},
                  .x = In{x},
                  .rstd = In{saved.rstd},
                  .z = In{saved.z},
                  .du = In{du},
                  .dy = In{dy},
                  .dpost = In{dpost},
                  .dx = Out{dx},
                  .dnorm = Out{dnorm},
                  .din = Out{din},
                  .dup = Out{dup}});
    });
    return {dnorm, din, dup, dx};
  }
};

LayerRead read(const GatedMaps& m, const Var& x) {
  constexpr const char* kOp = "gated_read";
  check_params(kOp, m, /*writes=*/true, x);
  if (x.dtype() == DType::bf16) {
    LayerRead wide = read(m, cast(x, DType::f32));
    wide.u = cast(wide.u, DType::bf16);
    wide.x = cast(wide.x, DType::bf16);
    return wide;
  }
  const auto maps = [&](const Var& post) {
    return StreamMaps{.h_pre = {}, .h_post = post, .h_res = eye(x.size(-2), x.dtype()), .gated = false};
  };
  if (composed()) {
    const auto [u, post] = compose(m, true, x);
    return {.u = u, .maps = maps(post), .x = x, .deferred = false};
  }
  const Read call(kOp, m, true, x);
  const Forward out = call.forward();
  const std::vector<Var> results =
      record(kOp, {out.u, call.x, out.post}, std::vector{m.norm, m.in, m.up, x},
             [=](std::span<const Tensor> dys, const Needs&) { return call.backward(out, dys[0], dys[1], dys[2]); });
  return {.u = results[0], .maps = maps(results[2]), .x = results[1]};
}

}  // namespace

Var gated_mean(const GatedMaps& m, const Var& x) {
  constexpr const char* kOp = "gated_mean";
  check_params(kOp, m, /*writes=*/false, x);
  if (x.dtype() == DType::bf16) return braid::detail::in_f32([&](const Var& wide) { return gated_mean(m, wide); }, x);
  if (composed()) return compose(m, false, x).first;
  const Read call(kOp, m, false, x);
  const Forward out = call.forward();
  return record(kOp, out.u, {m.norm, m.in, m.up, x},
                [=](const Tensor& du, const Needs&) { return call.backward(out, du, {}, {}); });
}

LayerRead read_maps(const GatedMaps& maps, StreamState& streams) { return read(maps, streams.settle()); }

}  // namespace braid::mhc
