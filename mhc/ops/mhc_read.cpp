#include <braid/mhc/ops/mhc_read.h>

#include <braid/autograd/composed.h>
#include <braid/autograd/ops.h>
#include <braid/core/reduce.h>
#include <braid/mhc/kernels/mhc_read.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {

/// The streams [..., n, C] at one connection, for its backward pass: kept, or recomputed from those of the connection
/// before, by its maps and its layer's output, without running the layer (arXiv:2512.24880, 4.3.2).
class detail::KeptStreams {
 public:
  explicit KeptStreams(Tensor x) : x_(std::move(x)) {}

  /// The result of write_streams() on the streams `before` with h_res, h_post and the layer's output f.
  KeptStreams(std::shared_ptr<KeptStreams> before, Tensor h_res, Tensor h_post, Tensor f)
      : before_(std::move(before)), h_res_(std::move(h_res)), h_post_(std::move(h_post)), f_(std::move(f)) {}

  /// The number of connections since the last kept streams.
  std::int64_t distance() const { return before_ ? before_->distance() + 1 : 0; }

  /// The streams, the same bits as in the forward pass. They stay in memory as long as this object, as do the streams
  /// that were recomputed on the way.
  const Tensor& x() {
    if (!x_.defined()) x_ = write_streams(h_res_, h_post_, before_->x(), f_);
    return x_;
  }

 private:
  std::shared_ptr<KeptStreams> before_;  // null: x_ is kept
  Tensor h_res_, h_post_, f_, x_;
};

namespace {

using detail::check_argument, detail::KeptStreams, detail::lead_of, detail::like, detail::stepped;
using kernels::MHCRead, kernels::MHCSaved, kernels::MHCSizes;

constexpr const char* kOp = "mhc_read";

void check_params(const MHCMaps& m, const Var& x) {
  detail::check_streams(kOp, x);
  check_shape(x.size(-2) == m.mixing.n(), "{}: x must have shape [..., {}, C] to match the mixing but has {}", kOp,
              m.mixing.n(), x.shape());
  check_argument(kOp, "phi", m.phi, {m.mixing.n() * x.size(-1), m.columns()}, x);
  check_argument(kOp, "alpha", m.alpha, {m.groups()}, x);
  check_argument(kOp, "bias", m.bias, {m.columns()}, x);
}

MHCSizes sizes_of(const MHCMaps& m, const Shape& x) {
  return {.tokens = lead_of(x).numel(),
          .n = x[-2],
          .channels = x[-1],
          .mixing = m.mixing,
          .reads_only = m.reads_only,
          .eps = m.eps,
          .pre_eps = m.pre_eps,
          .post_eps = m.post_eps,
          .post_magnitude = m.post_magnitude};
}

MHCRead arguments(const SinglePassMaps& single_pass, const StreamState& streams) {
  const auto& [m, pre] = single_pass;
  const auto& [last, f, keep_every] = streams;
  check_params(m, last.x);
  if (pre.value().defined())
    check_argument(kOp, "pre", pre, (pre.rank() > 1 ? lead_of(last.x.shape()) : Shape{}).concat({m.mixing.n()}),
                   last.x);
  return {.phi = m.phi.value().contiguous(),
          .alpha = m.alpha.value().contiguous(),
          .bias = m.bias.value().contiguous(),
          .pre = stepped(pre.value(), 1),
          .x = last.x.value().contiguous(),
          .h_res = last.maps.h_res.value(),
          .h_post = stepped(last.maps.h_post.value(), 1),
          .f = f.value().contiguous()};
}

/// Rows of maps are pre [n], post [n], res [n, n]: [..., n + 2, n].
struct Forward {
  Tensor u, x;
  MHCSaved saved;

  std::vector<Tensor> outputs() const {
    const Tensor& maps = saved.maps;
    return {u, x, maps.select(-2, 1), maps.slice(-2, 2, maps.size(-2)), maps.select(-2, 0)};
  }
};

/// The read of x, or of the result of the write.
Forward forward(const MHCSizes& s, const MHCRead& in) {
  const bool writes = in.f.defined();
  const auto make = [&](const Shape& tail, DType dtype) { return Tensor(lead_of(in.x.shape()).concat(tail), dtype); };
  const DType stored = in.x.dtype(), computed = compute_dtype(stored);
  Forward out{
      .u = make({s.channels}, stored),
      .x = writes ? like(in.x) : Tensor(),
      .saved = {.z = make({s.columns()}, computed), .r = make({}, computed), .maps = make({s.n + 2, s.n}, computed)}};
  kernels::mhc_read_kernels().dispatch(kOp, stored,
                                       [&](const auto& kernel) { kernel.read(s, in, out.saved, out.x, out.u); });
  if (!writes) out.x = in.x;
  return out;
}

/// The memory for dx: that of dy, which is used but once, if the kernel can work in place and dy is not shared.
Tensor memory_for_dx(const Tensor& x, Tensor& dy) {
  const bool in_place = dy.defined() && dy.unshared() && dy.is_contiguous() && x.size(-2) <= 4;
  return in_place ? std::move(dy) : Tensor(x.shape(), x.dtype());
}

/// The cotangent of a map from that per token.
Tensor summed_like(const Tensor& map, const Tensor& per_token) {
  if (!map.defined() || map.rank() == per_token.rank()) return per_token;
  return reduce_sum(per_token.reshape({-1, map.size(0)}), {0});
}

/// The cotangents of the arguments `in`, of which x is that of the streams; undefined for what was not given. One pass
/// computes all of them.
MHCRead backward(const MHCSizes& s, MHCRead in, const MHCSaved& saved, KeptStreams& streams, std::span<Tensor> dys) {
  in.x = streams.x();
  const Tensor du = dys[0].contiguous(), dh_post = dys[2].contiguous(), dh_pre = dys[4].contiguous();
  const bool written = dys[1].defined();
  const auto per_token = [&](const Tensor& map) {
    return map.defined() ? Tensor(lead_of(in.x.shape()).concat({s.n}), map.dtype()) : Tensor();
  };
  MHCRead d{.phi = like(in.phi),
            .alpha = like(in.alpha),
            .bias = like(in.bias),
            .pre = per_token(in.pre),
            .x = memory_for_dx(in.x, dys[1]),
            .h_post = per_token(in.h_post),
            .f = like(in.f)};
  const Tensor dy = dys[1].contiguous();  // undefined where d.x has its memory
  const Tensor& dy_in = written && !dy.defined() ? d.x : dy;
  kernels::mhc_read_kernels().dispatch(
      kOp, in.x.dtype(), [&](const auto& kernel) { kernel.vjp(s, in, saved, du, dy_in, dh_pre, dh_post, d); });
  d.h_post = summed_like(in.h_post, d.h_post);
  d.pre = summed_like(in.pre, d.pre);
  return d;
}

/// The read of the streams, or of the result of their deferred write where one is pending.
LayerRead read(const SinglePassMaps& m, const StreamState& streams) {
  const auto& [last, f, keep_every] = streams;
  MHCRead in = arguments(m, streams);
  const MHCSizes sizes = sizes_of(m.maps, last.x.shape());
  const Forward out = forward(sizes, in);
  const bool keep = last.kept == nullptr || last.kept->distance() + 1 == keep_every;
  auto kept =
      keep ? std::make_shared<KeptStreams>(out.x) : std::make_shared<KeptStreams>(last.kept, in.h_res, in.h_post, in.f);
  in.x = {};  // what was read comes from `kept`
  const auto defined_of = [](auto all) {
    std::erase_if(all, [](const auto& t) { return !t.defined(); });
    return all;
  };
  const auto vjp = [=, saved = out.saved](std::span<Tensor> dys, const Needs&) {
    const MHCRead d = backward(sizes, in, saved, *kept, dys);
    return defined_of(std::vector{d.x, d.h_post, d.f, d.phi, d.alpha, d.bias, d.pre});
  };
  const std::vector<Var> inputs =
      defined_of(std::vector{last.x, last.maps.h_post, f, m.maps.phi, m.maps.alpha, m.maps.bias, m.h_pre});
  const std::vector<Var> results =
      streams.pending() ? record("mhc_write_read", out.outputs(), inputs, vjp, Deferral{.input = 0, .output = 1})
                        : record("mhc_read", out.outputs(), inputs, vjp);
  return {.u = results[0],
          .maps = {.h_pre = in.pre.defined() ? results[4] : detach(results[4]),
                   .h_post = m.maps.reads_only ? Var() : results[2],
                   .h_res = results[3],
                   .post_magnitude = m.maps.post_magnitude},
          .x = results[1],
          .kept = std::move(kept)};
}

}  // namespace

LayerRead read_maps(const MHCMaps& maps, StreamState& streams) { return read_maps(SinglePassMaps{maps, {}}, streams); }

LayerRead read_maps(const SinglePassMaps& m, StreamState& streams) {
  if (!composed()) {
    if (!streams.pending() || !streams.last.deferred) streams.settle();
    return read(m, streams);
  }
  const Var& x = streams.settle();
  const StreamMaps maps = compose_maps(m.maps, x);
  const Var& read_by = m.h_pre.value().defined() ? m.h_pre : maps.h_pre;
  return {.u = read_streams(read_by, x), .maps = maps, .x = x, .deferred = false};
}

Var detail::normalized_products(const MHCMaps& m, const Var& x) {
  check_params(m, x);
  const Shape lead = lead_of(x.shape());
  const Var flat = cast(reshape(x, {lead.numel(), m.phi.size(0)}), m.phi.dtype());
  const Var h = matmul(flat, m.phi) / sqrt(mean(flat * flat, {-1}, true) + m.eps);
  return reshape(h, lead.concat({m.columns()}));
}

StreamMaps compose_maps(const MHCMaps& m, const Var& x) {
  const Composed scope(Composed::Ops::connections);
  const std::int64_t n = m.mixing.n();
  const Var h = detail::normalized_products(m, x);  // alpha = 1
  const auto logits = [&](std::int64_t map, std::int64_t begin, std::int64_t end) {
    return slice(m.alpha, 0, map, map + 1) * slice(h, -1, begin, end) + slice(m.bias, 0, begin, end);
  };
  const bool mixes = m.mixing.logits() > 0;
  const Var none = zeros(lead_of(x.shape()).concat({0}), m.phi.dtype());
  return {.h_pre = sigmoid(logits(0, 0, n)) + m.pre_eps,
          .h_post = m.reads_only ? Var() : m.post_magnitude * sigmoid(logits(1, n, 2 * n)) + m.post_eps,
          .h_res = m.mixing(mixes ? logits(m.groups() - 1, m.gates(), m.columns()) : none),
          .post_magnitude = m.post_magnitude};
}

}  // namespace braid::mhc
