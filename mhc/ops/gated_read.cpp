#include <braid/mhc/ops/gated_read.h>

#include <braid/autograd/ops.h>
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

/// The input of a layer [..., C], the streams as they are and the weights of the write [..., n], undefined without one.
struct Read {
  Var u, x, post;
};

Read compose(const GatedMaps& m, bool writes, const Var& x) {
  const std::int64_t n = x.size(-2), rank = m.up.size(1);
  const Shape flat = lead_of(x.shape()).concat({n * x.size(-1)});
  const Var normed = reshape(rms_norm(x, m.eps), flat) * (m.norm + 1.0);
  const Var z = linear(normed, m.in) / static_cast<double>(n);
  const Var gates = sigmoid(linear(silu(slice(z, -1, 0, rank)), m.up));
  return {mean(reshape(gates * normed, x.shape()), {-2}), x,
          writes ? 2.0 * sigmoid(slice(z, -1, rank, rank + n)) : Var()};
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

Read read(const char* op, const GatedMaps& m, bool writes, const Var& x) {
  check_params(op, m, writes, x);
  if (x.dtype() == DType::bf16) {
    const auto [u, same, post] = read(op, m, writes, cast(x, DType::f32));
    return {cast(u, DType::bf16), writes ? cast(same, DType::bf16) : x, post};
  }
  if (composed()) return compose(m, writes, x);
  const GatedRead in{.norm = m.norm.value().contiguous(),
                     .in = m.in.value().contiguous(),
                     .up = m.up.value().contiguous(),
                     .x = x.value().contiguous()};
  const auto make = [&](std::int64_t count) { return Tensor(lead_of(x.shape()).concat({count}), x.dtype()); };
  GatedSaved saved{.rstd = make(x.size(-2)), .z = make(in.in.size(0))};
  Tensor u = make(x.size(-1)), post = writes ? make(x.size(-2)) : Tensor();
  kernels::gated_read_kernels().dispatch(op, x.dtype(),
                                         [&](const auto& kernel) { kernel.read(in, m.eps, saved, u, post); });
  const std::vector<Var> inputs{m.norm, m.in, m.up, x};
  if (!writes) return {record(op, u, inputs, [=](const Tensor& du) { return backward(in, saved, du, {}, {}); }), x, {}};
  const auto vjp = [=](std::span<const Tensor> dys, const Needs&) {
    return backward(in, saved, dys[0], dys[1], dys[2]);
  };
  const std::vector<Var> results = record(op, {u, in.x, post}, inputs, vjp);
  return {results[0], results[1], results[2]};
}

}  // namespace

Var gated_mean(const GatedMaps& maps, const Var& x) { return read("gated_mean", maps, /*writes=*/false, x).u; }

LayerRead read_maps(const GatedMaps& maps, StreamState& streams) {
  const auto [u, x, post] = read("gated_read", maps, /*writes=*/true, streams.settle());
  const Var h_res = eye(x.size(-2), compute_dtype(x.dtype()));
  return {
      .u = u, .maps = {.h_pre = {}, .h_post = post, .h_res = h_res, .gated = false}, .x = x, .deferred = !composed()};
}

}  // namespace braid::mhc
