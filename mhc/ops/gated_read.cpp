#include <braid/mhc/ops/gated_read.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/mhc/kernels/gated_read.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {
namespace {

using detail::lead_of, detail::like, kernels::GatedRead, kernels::GatedSaved;

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

GatedRead arguments(const GatedMaps& m, const Var& x) {
  return {.norm = m.norm.value().contiguous(),
          .in = m.in.value().contiguous(),
          .up = m.up.value().contiguous(),
          .x = x.value().contiguous()};
}

/// As compose(). Sets `saved`.
std::pair<Tensor, Tensor> forward(const GatedRead& in, bool writes, double eps, GatedSaved& saved) {
  const Tensor& x = in.x;
  const auto make = [&](std::int64_t count) { return Tensor(lead_of(x.shape()).concat({count}), x.dtype()); };
  saved = {.rstd = make(x.size(-2)), .z = make(in.in.size(0))};
  Tensor u = make(x.size(-1)), post = writes ? make(x.size(-2)) : Tensor();
  kernels::gated_read_kernels().dispatch("gated_read", x.dtype(),
                                         [&](const auto& kernel) { kernel.read(in, eps, saved, u, post); });
  return {u, post};
}

/// Cotangents of norm, in, up, x. Undefined cotangents of results are zero.
std::vector<Tensor> backward(const GatedRead& in, const GatedSaved& saved, const Tensor& du_in, const Tensor& dy_in,
                             const Tensor& dpost_in) {
  const Shape lead = lead_of(in.x.shape());
  const auto or_zero = [&](const Tensor& t, std::int64_t count) {
    return t.defined() ? t.contiguous() : zeros(lead.concat({count}), in.x.dtype());
  };
  const Tensor du = or_zero(du_in, in.x.size(-1)), dy = dy_in.contiguous(), dpost = or_zero(dpost_in, in.x.size(-2));
  GatedRead d{.norm = like(in.norm), .in = like(in.in), .up = like(in.up), .x = like(in.x)};
  kernels::gated_read_kernels().dispatch("gated_read", in.x.dtype(),
                                         [&](const auto& kernel) { kernel.vjp(in, saved, du, dy, dpost, d); });
  return {d.norm, d.in, d.up, d.x};
}

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
  const GatedRead in = arguments(m, x);
  GatedSaved saved;
  const auto [u, post] = forward(in, true, m.eps, saved);
  const std::vector<Var> results =
      record(kOp, {u, in.x, post}, std::vector{m.norm, m.in, m.up, x},
             [=](std::span<const Tensor> dys, const Needs&) { return backward(in, saved, dys[0], dys[1], dys[2]); });
  return {.u = results[0], .maps = maps(results[2]), .x = results[1]};
}

}  // namespace

Var gated_mean(const GatedMaps& m, const Var& x) {
  constexpr const char* kOp = "gated_mean";
  check_params(kOp, m, /*writes=*/false, x);
  if (x.dtype() == DType::bf16) return braid::detail::in_f32([&](const Var& wide) { return gated_mean(m, wide); }, x);
  if (composed()) return compose(m, false, x).first;
  const GatedRead in = arguments(m, x);
  GatedSaved saved;
  const Tensor u = forward(in, false, m.eps, saved).first;
  return record(kOp, u, {m.norm, m.in, m.up, x},
                [=](const Tensor& du, const Needs&) { return backward(in, saved, du, {}, {}); });
}

LayerRead read_maps(const GatedMaps& maps, StreamState& streams) { return read(maps, streams.settle()); }

}  // namespace braid::mhc
